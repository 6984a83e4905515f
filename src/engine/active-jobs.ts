import type { Job } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import { isTerminal } from '../jobs/states.ts'
import type { MachineRecord, Outcome, Provider, StopReason } from '../ports.ts'
import type { EngineContext } from './engine-context.ts'
import type { Disposal } from './machine-disposal.ts'
import { nextState, type Transition } from './next-state.ts'
import { retryWrite } from './retry-write.ts'
import { superviseJob } from './supervise-job.ts'

/** The jobs that this daemon currently supervises. */
export interface ActiveJobs {
  run(job: Job, manifest: Manifest, machine: MachineRecord, mode: 'start' | 'attach'): Promise<void>
  /** Stops a supervised job; false when this daemon does not supervise it. */
  stop(jobId: string, reason: StopReason): boolean
  count(runtime: string): number
  has(jobId: string): boolean
  /** Resolves when no job is supervised any more. */
  idle(): Promise<void>
}

interface Active {
  readonly stop: AbortController
  readonly done: Promise<void>
}

export const createActiveJobs = (
  context: EngineContext,
  disposal: Disposal,
  onFree: () => void,
): ActiveJobs => {
  const active = new Map<string, Active>()
  /** Counted by provider, because every claim asks and thousands of jobs may be active. */
  const counts = new Map<string, number>()
  const addToCount = (runtime: string, by: number): void => {
    counts.set(runtime, (counts.get(runtime) ?? 0) + by)
  }

  const finish = async (
    job: Job,
    manifest: Manifest,
    machine: MachineRecord,
    outcome: Outcome,
    stopReason: StopReason | null,
  ) => {
    if (outcome.kind === 'detached') return
    const { store, clock, fault } = context
    const now = clock.now()
    const current = (await store.getJob(job.id)) ?? job
    const transition = nextState(current, manifest, outcome, { now, stopReason })
    // A follow-up job that fails must not destroy the machine that the user keeps.
    const keep =
      manifest.machine !== undefined || (outcome.kind === 'exit' && manifest.lifecycle === 'persistent')
    const condemned = await storeOutcome(context, job.id, transition, () =>
      keep
        ? store.updateMachine(machine.id, kept(context, manifest, machine)).then(() => undefined)
        : store.condemnMachine(machine.id),
    )
    fault('settled')
    context.changes.emit({ jobId: job.id, kind: 'state' })
    if (!keep) void disposal.dispose(condemned ?? machine)
  }

  const run: ActiveJobs['run'] = (job, manifest, machine, mode) => {
    const provider = context.providers.get(machine.runtime) as Provider
    const stop = new AbortController()
    const work = async (): Promise<void> => {
      // The user may have cancelled between the claim and now, before this job could be stopped.
      const current = await context.store.getJob(job.id)
      if (current !== undefined && current.cancelRequestedAt !== null && !stop.signal.aborted)
        stop.abort({ kind: 'cancel', by: 'the user' } satisfies StopReason)
      const outcome = await superviseJob(context, { job, manifest, machine, provider, mode, stop })
      const stopReason = stop.signal.aborted ? (stop.signal.reason as StopReason) : null
      await finish(job, manifest, machine, outcome, stopReason)
    }
    const done = work()
      .catch(error => context.log.error({ job: job.id, err: error }, 'cannot finish a job'))
      .finally(() => {
        active.delete(job.id)
        addToCount(machine.runtime, -1)
        onFree()
      })
    active.set(job.id, { stop, done })
    addToCount(machine.runtime, 1)
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
    count: runtime => counts.get(runtime) ?? 0,
    has: jobId => active.has(jobId),
    idle: async () => {
      await Promise.allSettled([...active.values()].map(entry => entry.done))
    },
  }
}

/**
 * Both writes are issued in the same turn of the event loop, so they share one transaction, in this order: no job is
 * finished while its machine is neither kept nor marked for destruction.
 */
const storeOutcome = async (
  context: EngineContext,
  jobId: string,
  { to, change, reason }: Transition,
  writeMachine: () => Promise<MachineRecord | undefined>,
): Promise<MachineRecord | undefined> => {
  const { store, clock, log } = context
  const event = { at: clock.now(), data: { reason, ...(change.phases && { phases: change.phases }) } }
  const [machine, moved] = await retryWrite(
    context,
    () => Promise.all([writeMachine(), store.move(jobId, to, change, event)]),
    { mayUseBallast: true },
  )
  if (!moved) log.warn({ job: jobId, to }, 'ignored a late outcome: the job is already finished')
  else if (isTerminal(to)) log.info({ job: jobId, state: to, ms: change.phases?.running }, 'job finished')
  return machine
}

const kept = (
  { clock, config }: EngineContext,
  manifest: Manifest,
  machine: MachineRecord,
): Partial<MachineRecord> => ({
  state: 'kept',
  leaseUntil: machine.leaseUntil ?? clock.now() + (manifest.lease ?? config.defaults.lease) * 1000,
})
