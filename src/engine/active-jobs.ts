import type { Job } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import { isTerminal } from '../jobs/states.ts'
import type { MachineRecord, Outcome, Provider, StopReason } from '../ports.ts'
import type { EngineContext } from './engine-context.ts'
import type { Disposal } from './machine-disposal.ts'
import { nextState, type Transition } from './next-state.ts'
import { retryWrite } from './retry-write.ts'
import type { BatchOptions } from './run-batch.ts'
import { superviseBatch, superviseJob } from './supervise-job.ts'

/** The jobs that this daemon currently supervises. */
export interface ActiveJobs {
  run(job: Job, manifest: Manifest, machine: MachineRecord, mode: 'start' | 'attach'): Promise<void>
  /** A batch has no machine. */
  runBatch(job: Job, manifest: Manifest, mode: 'start' | 'attach'): Promise<void>
  /** Stops a supervised job; false when this daemon does not supervise it. */
  stop(jobId: string, reason: StopReason): boolean
  count(runtime: string): number
  has(jobId: string): boolean
  /** Resolves when no job is supervised any more. */
  idle(): Promise<void>
}

interface ActiveJobsOptions {
  readonly disposal: Disposal
  readonly batches: BatchOptions
  onFree(): void
}

interface Ended {
  readonly job: Job
  readonly manifest: Manifest
  readonly outcome: Exclude<Outcome, { kind: 'detached' }>
  readonly stopReason: StopReason | null
}

interface Active {
  readonly stop: AbortController
  readonly done: Promise<void>
}

export const createActiveJobs = (
  context: EngineContext,
  { disposal, batches, onFree }: ActiveJobsOptions,
): ActiveJobs => {
  const active = new Map<string, Active>()
  /** Counted by provider, because every claim asks and thousands of jobs may be active. */
  const counts = new Map<string, number>()
  const addToCount = (runtime: string, by: number): void => {
    counts.set(runtime, (counts.get(runtime) ?? 0) + by)
  }

  /** Stores the next state of the job and, in the same transaction, that of its machine. */
  const settle = async (
    { job, manifest, outcome, stopReason }: Ended,
    writeMachine: () => Promise<MachineRecord | undefined>,
  ): Promise<MachineRecord | undefined> => {
    const { store, clock } = context
    const current = (await store.getJob(job.id)) ?? job
    const transition = nextState(current, manifest, outcome, { now: clock.now(), stopReason })
    const machine = await storeOutcome(context, job.id, transition, writeMachine)
    context.fault('settled')
    context.changes.emit({ jobId: job.id, kind: 'state' })
    return machine
  }

  const finish = async (ended: Ended, machine: MachineRecord): Promise<void> => {
    const { manifest, outcome } = ended
    const { store } = context
    // A follow-up job that fails must not destroy the machine that the user keeps.
    const keep =
      manifest.machine !== undefined || (outcome.kind === 'exit' && manifest.lifecycle === 'persistent')
    const marked = await settle(ended, () =>
      keep
        ? store.updateMachine(machine.id, kept(context, manifest, machine)).then(() => undefined)
        : store.markDestroying(machine.id),
    )
    if (!keep) void disposal.dispose(marked ?? machine)
  }

  /** Keeps the job among the active ones until `supervise` has ended and `end` has stored how. */
  const track = (
    job: Job,
    supervise: (stop: AbortController) => Promise<Outcome>,
    end: (outcome: Ended['outcome'], stopReason: StopReason | null) => Promise<unknown>,
  ): Promise<void> => {
    const stop = new AbortController()
    const work = async (): Promise<void> => {
      // The user may have cancelled between the claim and now, before this job could be stopped.
      const current = await context.store.getJob(job.id)
      if (current !== undefined && current.cancelRequestedAt !== null && !stop.signal.aborted)
        stop.abort({ kind: 'cancel', by: 'the user' } satisfies StopReason)
      const outcome = await supervise(stop)
      if (outcome.kind === 'detached') return
      await end(outcome, stop.signal.aborted ? (stop.signal.reason as StopReason) : null)
    }
    const done = work()
      .catch(error => context.log.error({ job: job.id, err: error }, 'cannot finish a job'))
      .finally(() => {
        active.delete(job.id)
        addToCount(job.runtime, -1)
        onFree()
      })
    active.set(job.id, { stop, done })
    addToCount(job.runtime, 1)
    return done
  }

  const run: ActiveJobs['run'] = (job, manifest, machine, mode) => {
    const provider = context.providers.get(machine.runtime) as Provider
    return track(
      job,
      stop => superviseJob(context, { job, manifest, machine, provider, mode, stop }),
      (outcome, stopReason) => finish({ job, manifest, outcome, stopReason }, machine),
    )
  }

  const runBatch: ActiveJobs['runBatch'] = (job, manifest, mode) =>
    track(
      job,
      stop => superviseBatch(context, batches, { job, manifest, mode, stop }),
      (outcome, stopReason) => settle({ job, manifest, outcome, stopReason }, async () => undefined),
    )

  return {
    run,
    runBatch,
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
