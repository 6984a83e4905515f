import { toAppError } from '../jobs/errors.ts'
import { parseSize } from '../jobs/sizes.ts'
import type { FoundMachine, MachineRecord, Runtime } from '../ports.ts'
import type { Runner } from './active-jobs.ts'
import type { EngineContext } from './engine-context.ts'
import { createKnownTime } from './known-time.ts'
import { type Disposal, isDue, recordMachine } from './machine-disposal.ts'
import type { Pool } from './machine-pool.ts'

export interface Sweeper {
  /** Makes what is recorded and what exists agree, and forgets what is old. */
  sweep(): Promise<void>
  start(): void
}

/** A machine nobody recorded may be one that is being recorded: it is looked at again before it goes. */
const GRACE_MS = 60_000
/** An uploaded workspace waits this long for the job that uses it. */
const UPLOAD_MS = 3_600_000
const DAY_MS = 86_400_000
const JOBS_MS = 60_000
/** How late a job may be told that its time in the queue is over. */
const OVERDUE_MS = 1_000
const BLOBS_MS = 3_600_000
/** Share a transaction; more would keep others waiting for it. */
const DELETED_AT_ONCE = 50

export const createSweeper = (
  context: EngineContext,
  { runner, disposal, pool }: { runner: Runner; disposal: Disposal; pool: Pool },
): Sweeper => {
  const { store, clock, config, log } = context
  const firstSeen = new Map<string, number>()
  const time = createKnownTime(context)

  const isOld = (found: FoundMachine): boolean => {
    const seen = firstSeen.get(found.id) ?? clock.monotonic()
    firstSeen.set(found.id, seen)
    return clock.monotonic() - seen >= GRACE_MS
  }

  const reapOrphans = async (runtime: Runtime): Promise<void> => {
    const waited = await waitingFor(runtime)
    const found = await runtime.list(context.closing)
    await Promise.all(found.map(machine => reap(runtime, machine)))
    const seen = new Set(found.map(machine => machine.id))
    for (const id of firstSeen.keys()) if (!seen.has(id)) firstSeen.delete(id)
    const existing = new Set(found.filter(machine => !machine.leftover).map(machine => machine.id))
    for (const machine of waited)
      if (!existing.has(machine.id) && (await isGone(runtime, machine))) await forgetVanished(machine)
  }

  /** On record it is tried again with growing pauses, and shown to people when it does not go. */
  const reap = async (runtime: Runtime, found: FoundMachine): Promise<void> => {
    if ((await store.getMachine(found.id)) !== undefined || !isOld(found)) return
    log.warn({ machine: found.id, runtime: runtime.name }, 'destroying a machine of ours that nobody knows')
    firstSeen.delete(found.id)
    const { id, details } = found
    await disposal.dispose(await recordMachine(context, runtime, { id, details, state: 'destroying' }))
  }

  const isGone = async (runtime: Runtime, machine: MachineRecord): Promise<boolean> =>
    runtime.isGone === undefined || runtime.isGone(machine, context.closing)

  const waitingFor = async ({ name }: Runtime): Promise<MachineRecord[]> =>
    (await store.listMachines()).filter(
      ({ runtime, state }) => runtime === name && (state === 'kept' || state === 'ready'),
    )

  /** A machine that waits, but that its runtime does not have any more (a reboot ends sandboxes). */
  const forgetVanished = async ({ id }: MachineRecord): Promise<void> => {
    const machine = await store.getMachine(id)
    if (machine?.state !== 'kept' && !(machine?.state === 'ready' && (await store.retireMachine(id)))) return
    log.warn({ machine: id, state: machine.state }, 'a machine that waited has vanished')
    await disposal.dispose(machine)
  }

  const shouldGo = (machine: MachineRecord): boolean => {
    if (machine.jobId !== null && runner.has(machine.jobId)) return false
    if (machine.state === 'destroying') return isDue(machine, clock.now())
    return machine.state === 'kept' && machine.leaseUntil !== null && machine.leaseUntil <= time.now()
  }

  const sweepMachines = async (): Promise<void> => {
    const going = (await store.listMachines()).filter(shouldGo)
    // Side by side: one that waits for a lock holds nobody up.
    await Promise.all([
      ...going.map(disposal.dispose),
      ...[...context.runtimes.values()].map(runtime =>
        reapOrphans(runtime).catch(error =>
          log.warn({ runtime: runtime.name, err: toAppError(error) }, 'orphans not looked for'),
        ),
      ),
    ])
  }

  const failStranded = async (): Promise<void> => {
    for (const job of await store.strandedJobs()) {
      const message = `The machine ${job.wantsMachine} it was to run in does not exist any more.`
      const at = clock.now()
      await store.move(
        job.id,
        'failed',
        { completedAt: at, error: { code: 'machine', message } },
        { at, data: { reason: message } },
      )
      context.signals.emit({ jobId: job.id, kind: 'state' })
    }
  }

  const failOverdue = async (): Promise<void> => {
    const now = clock.now()
    for (const job of await store.overdueJobs(time.now())) {
      const { queueTimeout = config.defaults.queueTimeout } = (await store.getManifest(job.id)) ?? {}
      const message = `It did not start within ${queueTimeout} s${job.progress === null ? '.' : ` (${job.progress}).`}`
      await store.move(
        job.id,
        'failed',
        { completedAt: now, error: { code: 'machine', message, hint: "Set a longer 'queueTimeout'." } },
        { at: now, data: { reason: message } },
        { from: ['pending'] },
      )
      context.signals.emit({ jobId: job.id, kind: 'state' })
    }
  }

  const sweepJobs = async (): Promise<void> => {
    const before = time.now() - config.keep.days * DAY_MS
    const policy = { jobs: config.keep.jobs, bytes: parseSize(config.keep.bytes), before }
    let forgotten = 0
    // Until nothing is due: jobs may come in faster than one batch a sweep.
    while (!context.closing.aborted) {
      const expired = await store.expiredJobs(policy)
      if (expired.length === 0) break
      for (let at = 0; at < expired.length; at += DELETED_AT_ONCE)
        await Promise.all(expired.slice(at, at + DELETED_AT_ONCE).map(forget))
      forgotten += expired.length
      await store.compact()
    }
    if (forgotten > 0) log.info({ jobs: forgotten }, 'forgot old jobs')
  }

  const forget = async (id: string): Promise<void> => {
    for (const blob of (await store.deleteJob(id)) ?? []) await context.blobs.removeUnused(blob)
  }

  const sweepBlobs = async (): Promise<void> => {
    await store.releaseStaleBlobs(time.now() - UPLOAD_MS)
    for await (const blob of context.blobs.list())
      if (time.now() - blob.modifiedAt > UPLOAD_MS) await context.blobs.removeUnused(blob.sha256)
  }

  /** Looking through everything that is kept is not for every sweep. */
  const rarely = (ms: number, part: () => Promise<void>): (() => Promise<void>) => {
    let next = Number.NEGATIVE_INFINITY
    return async () => {
      if (clock.monotonic() < next) return
      next = clock.monotonic() + ms
      await part()
    }
  }

  const tendPool = async (): Promise<void> => pool.refill()
  const restoreBallast = async (): Promise<void> => void context.ballast?.restore()
  const parts = [
    time.update,
    restoreBallast,
    sweepMachines,
    tendPool,
    failStranded,
    rarely(JOBS_MS, sweepJobs),
    rarely(BLOBS_MS, sweepBlobs),
  ]
  const attempt = (part: () => Promise<void>): Promise<void> =>
    part().catch(error => {
      if (!context.closing.aborted) log.error({ err: error }, 'a sweep failed')
    })
  const sweep = async (): Promise<void> => {
    for (const part of parts) await attempt(part)
  }

  return {
    sweep,
    start: () => {
      let busy = false
      const tick = async (): Promise<void> => {
        if (busy) return
        busy = true
        await sweep().finally(() => {
          busy = false
        })
      }
      const timers = [
        setInterval(tick, config.supervision.cleanup * 1000),
        setInterval(() => void attempt(failOverdue), OVERDUE_MS),
      ]
      context.closing.addEventListener('abort', () => timers.forEach(clearInterval), { once: true })
      void tick()
    },
  }
}
