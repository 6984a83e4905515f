import type { Job } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import { isTerminal } from '../jobs/states.ts'
import type { MachineRecord, Outcome, Runtime, StopReason } from '../ports.ts'
import type { EngineContext } from './engine-context.ts'
import type { Disposal } from './machine-disposal.ts'
import { type Verdict, verdict } from './next-state.ts'
import { durably } from './retry-write.ts'
import { supervise } from './supervise-job.ts'

/** The jobs this daemon is with at the moment. */
export interface Runner {
  run(job: Job, manifest: Manifest, machine: MachineRecord, mode: 'start' | 'attach'): Promise<void>
  /** Ends a job this daemon is with; false when it is with none of that id. */
  stop(jobId: string, reason: StopReason): boolean
  running(runtime: string): number
  has(jobId: string): boolean
  /** Resolves when it is with no job any more. */
  idle(): Promise<void>
}

interface Active {
  readonly stop: AbortController
  readonly done: Promise<void>
}

export const createRunner = (context: EngineContext, disposal: Disposal, onFree: () => void): Runner => {
  const active = new Map<string, Active>()
  /** By runtime: it is asked at every claim, and those that run may be thousands. */
  const running = new Map<string, number>()
  const count = (runtime: string, by: number): void => {
    running.set(runtime, (running.get(runtime) ?? 0) + by)
  }

  const conclude = async (
    job: Job,
    manifest: Manifest,
    machine: MachineRecord,
    outcome: Outcome,
    asked: StopReason | null,
  ) => {
    if (outcome.kind === 'detached') return
    const { store, clock, fault } = context
    const now = clock.now()
    const current = (await store.getJob(job.id)) ?? job
    const decision = verdict(current, manifest, outcome, { now, asked })
    // A machine the user has kept is not thrown away because a follow-up could not start in it.
    const keep =
      manifest.machine !== undefined || (outcome.kind === 'exit' && manifest.lifecycle === 'persistent')
    const condemned = await settle(context, job.id, decision, () =>
      keep
        ? store.updateMachine(machine.id, kept(context, manifest, machine)).then(() => undefined)
        : store.condemnMachine(machine.id),
    )
    fault('settled')
    context.signals.emit({ jobId: job.id, kind: 'state' })
    if (!keep) void disposal.dispose(condemned ?? machine)
  }

  const run: Runner['run'] = (job, manifest, machine, mode) => {
    const runtime = context.runtimes.get(machine.runtime) as Runtime
    const stop = new AbortController()
    const work = async (): Promise<void> => {
      // A wish to cancel may have come between the claim and this moment, when nobody could be told.
      const current = await context.store.getJob(job.id)
      if (current !== undefined && current.cancelRequestedAt !== null && !stop.signal.aborted)
        stop.abort({ kind: 'cancel', by: 'the user' } satisfies StopReason)
      const outcome = await supervise(context, { job, manifest, machine, runtime, mode, stop })
      const asked = stop.signal.aborted ? (stop.signal.reason as StopReason) : null
      await conclude(job, manifest, machine, outcome, asked)
    }
    const done = work()
      .catch(error => context.log.error({ job: job.id, err: error }, 'a job could not be concluded'))
      .finally(() => {
        active.delete(job.id)
        count(machine.runtime, -1)
        onFree()
      })
    active.set(job.id, { stop, done })
    count(machine.runtime, 1)
    return done
  }

  return {
    run,
    stop: (jobId, reason) => {
      const entry = active.get(jobId)
      if (entry === undefined) return false
      if (!entry.stop.signal.aborted) entry.stop.abort(reason)
      return true
    },
    running: runtime => running.get(runtime) ?? 0,
    has: jobId => active.has(jobId),
    idle: async () => {
      await Promise.allSettled([...active.values()].map(entry => entry.done))
    },
  }
}

/**
 * Asked for in the same turn, the machine's fate and the job's are one transaction, in this order: a job is never
 * finished while its machine is in nobody's hands.
 */
const settle = async (
  context: EngineContext,
  jobId: string,
  { to, change, reason }: Verdict,
  writeFate: () => Promise<MachineRecord | undefined>,
): Promise<MachineRecord | undefined> => {
  const { store, clock, log } = context
  const event = { at: clock.now(), data: { reason, ...(change.phases && { phases: change.phases }) } }
  const [fate, moved] = await durably(
    context,
    () => Promise.all([writeFate(), store.move(jobId, to, change, event)]),
    { mayUseBallast: true },
  )
  if (!moved) log.warn({ job: jobId, to }, 'a late outcome was ignored: the job is finished')
  else if (isTerminal(to)) log.info({ job: jobId, state: to, ms: change.phases?.running }, 'job finished')
  return fate
}

const kept = (
  { clock, config }: EngineContext,
  manifest: Manifest,
  machine: MachineRecord,
): Partial<MachineRecord> => ({
  state: 'kept',
  leaseUntil: machine.leaseUntil ?? clock.now() + (manifest.lease ?? config.defaults.lease) * 1000,
})
