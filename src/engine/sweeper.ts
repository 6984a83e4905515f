import { toAppError } from '../jobs/errors.ts'
import { parseSize } from '../jobs/sizes.ts'
import type { FoundMachine, MachineRecord, Provider } from '../ports.ts'
import type { ActiveJobs } from './active-jobs.ts'
import type { EngineContext } from './engine-context.ts'
import { createKnownTime } from './known-time.ts'
import { type Disposal, isDue, recordMachine } from './machine-disposal.ts'
import type { Pool } from './machine-pool.ts'

export interface Sweeper {
  /** Runs all cleanup tasks once: reconciles records with existing machines and deletes what has expired. */
  sweep(): Promise<void>
  start(): void
}

/** Grace period of an orphan, because its record may be about to be written. */
const GRACE_MS = 60_000
/** How long an upload is kept without a job that uses it. */
const UPLOAD_TTL_MS = 3_600_000
const DAY_MS = 86_400_000
const JOBS_INTERVAL_MS = 60_000
/** Upper bound on how late a queue timeout takes effect. */
const OVERDUE_INTERVAL_MS = 1_000
const BLOBS_INTERVAL_MS = 3_600_000
/** Jobs deleted in one transaction; more would delay other writes. */
const DELETE_BATCH = 50

export const createSweeper = (
  context: EngineContext,
  { activeJobs, disposal, pool }: { activeJobs: ActiveJobs; disposal: Disposal; pool: Pool },
): Sweeper => {
  const { store, clock, config, log } = context
  const firstSeen = new Map<string, number>()
  const time = createKnownTime(context)

  const isPastGracePeriod = (found: FoundMachine): boolean => {
    const seen = firstSeen.get(found.id) ?? clock.monotonic()
    firstSeen.set(found.id, seen)
    return clock.monotonic() - seen >= GRACE_MS
  }

  const reapOrphans = async (provider: Provider): Promise<void> => {
    const idle = await idleMachines(provider)
    const found = await provider.list(context.closing, idle)
    await Promise.all(found.map(machine => reap(provider, machine)))
    const seen = new Set(found.map(machine => machine.id))
    for (const id of firstSeen.keys()) if (!seen.has(id)) firstSeen.delete(id)
    const existing = new Set(found.filter(machine => !machine.leftover).map(machine => machine.id))
    for (const machine of idle) if (!existing.has(machine.id)) await forgetVanished(machine)
  }

  /** Recorded as `destroying`, an orphan is retried with backoff and shown to the user when that keeps failing. */
  const reap = async (provider: Provider, found: FoundMachine): Promise<void> => {
    if ((await store.getMachine(found.id)) !== undefined || !isPastGracePeriod(found)) return
    log.warn({ machine: found.id, runtime: provider.name }, 'destroying an orphaned machine')
    firstSeen.delete(found.id)
    const { id, details } = found
    await disposal.dispose(await recordMachine(context, provider, { id, details, state: 'destroying' }))
  }

  const idleMachines = async ({ name }: Provider): Promise<MachineRecord[]> =>
    (await store.listMachines()).filter(
      ({ runtime, state }) => runtime === name && (state === 'kept' || state === 'ready'),
    )

  /** Cleans up after an idle machine that no longer exists (a reboot ends sandboxes). */
  const forgetVanished = async ({ id }: MachineRecord): Promise<void> => {
    const machine = await store.getMachine(id)
    if (machine?.state !== 'kept' && !(machine?.state === 'ready' && (await store.retireMachine(id)))) return
    log.warn({ machine: id, state: machine.state }, 'an idle machine no longer exists')
    await disposal.dispose(machine)
  }

  const isDueForDestruction = (machine: MachineRecord): boolean => {
    if (machine.jobId !== null && activeJobs.has(machine.jobId)) return false
    if (machine.state === 'destroying') return isDue(machine, clock.now())
    return machine.state === 'kept' && machine.leaseUntil !== null && machine.leaseUntil <= time.now()
  }

  const sweepMachines = async (): Promise<void> => {
    const due = (await store.listMachines()).filter(isDueForDestruction)
    // In parallel: a machine that waits for a lock must not delay the others.
    await Promise.all([
      ...due.map(disposal.dispose),
      ...[...context.providers.values()].map(provider =>
        reapOrphans(provider).catch(error =>
          log.warn(
            { runtime: provider.name, err: toAppError(error) },
            'cannot list machines to find orphans',
          ),
        ),
      ),
    ])
  }

  const failStranded = async (): Promise<void> => {
    for (const job of await store.strandedJobs()) {
      const message = `Machine '${job.wantsMachine}', which the job was to run in, no longer exists.`
      const at = clock.now()
      await store.move(
        job.id,
        'failed',
        { completedAt: at, error: { code: 'machine', message } },
        { at, data: { reason: message } },
      )
      context.changes.emit({ jobId: job.id, kind: 'state' })
    }
  }

  const failOverdue = async (): Promise<void> => {
    const now = clock.now()
    for (const job of await store.overdueJobs(time.now())) {
      const { queueTimeout = config.defaults.queueTimeout } = (await store.getManifest(job.id)) ?? {}
      const message = `The job did not start within ${queueTimeout} s${job.progress === null ? '.' : ` (${job.progress}).`}`
      await store.move(
        job.id,
        'failed',
        { completedAt: now, error: { code: 'machine', message, hint: "Set a longer 'queueTimeout'." } },
        { at: now, data: { reason: message } },
        { from: ['pending'] },
      )
      context.changes.emit({ jobId: job.id, kind: 'state' })
    }
  }

  const sweepJobs = async (): Promise<void> => {
    const before = time.now() - config.keep.days * DAY_MS
    const policy = { jobs: config.keep.jobs, bytes: parseSize(config.keep.bytes), before }
    let deleted = 0
    // Repeat until nothing is expired: jobs may arrive faster than one batch per sweep.
    while (!context.closing.aborted) {
      const expired = await store.expiredJobs(policy)
      if (expired.length === 0) break
      for (let at = 0; at < expired.length; at += DELETE_BATCH)
        await Promise.all(expired.slice(at, at + DELETE_BATCH).map(deleteJob))
      deleted += expired.length
      await store.compact()
    }
    if (deleted > 0) log.info({ jobs: deleted }, 'deleted old jobs')
  }

  const deleteJob = async (id: string): Promise<void> => {
    for (const blob of (await store.deleteJob(id)) ?? []) await context.blobs.removeUnused(blob)
  }

  const sweepBlobs = async (): Promise<void> => {
    await store.releaseStaleBlobs(time.now() - UPLOAD_TTL_MS)
    for await (const blob of context.blobs.list())
      if (time.now() - blob.modifiedAt > UPLOAD_TTL_MS) await context.blobs.removeUnused(blob.sha256)
  }

  /** Limits how often a task runs that reads all stored jobs or blobs. */
  const atMostEvery = (ms: number, task: () => Promise<void>): (() => Promise<void>) => {
    let next = Number.NEGATIVE_INFINITY
    return async () => {
      if (clock.monotonic() < next) return
      next = clock.monotonic() + ms
      await task()
    }
  }

  const refillPool = async (): Promise<void> => pool.refill()
  const restoreBallast = async (): Promise<void> => void context.ballast?.restore()
  const tasks = [
    time.update,
    restoreBallast,
    sweepMachines,
    refillPool,
    failStranded,
    atMostEvery(JOBS_INTERVAL_MS, sweepJobs),
    atMostEvery(BLOBS_INTERVAL_MS, sweepBlobs),
  ]
  const attempt = (task: () => Promise<void>): Promise<void> =>
    task().catch(error => {
      if (!context.closing.aborted) log.error({ err: error }, 'sweep failed')
    })
  const sweep = async (): Promise<void> => {
    for (const task of tasks) await attempt(task)
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
        setInterval(() => void attempt(failOverdue), OVERDUE_INTERVAL_MS),
      ]
      context.closing.addEventListener('abort', () => timers.forEach(clearInterval), { once: true })
      void tick()
    },
  }
}
