import type { Fleet } from '../ports.ts'
import type { ActiveJobs } from './active-jobs.ts'
import { type ChangeNotifier, createChangeNotifier } from './change-notifier.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { EngineContext } from './engine-context.ts'

/** How late a cancellation takes effect when its notification was lost, and jobs of lost daemons fail. */
const POLL_MS = 5000

/** Listeners of this daemon hear of the changes of all daemons, and the other way round. */
export interface SharedChanges {
  readonly changes: ChangeNotifier
  /** Passes on the changes of other daemons, and stops jobs that were cancelled through one of them. */
  start(context: EngineContext, parts: { activeJobs: ActiveJobs; dispatcher: Dispatcher }): void
}

export const shareChanges = (fleet: Fleet): SharedChanges => {
  const local = createChangeNotifier()
  const changes: ChangeNotifier = {
    ...local,
    emit: change => {
      local.emit(change)
      fleet.publish(change)
    },
  }

  const start: SharedChanges['start'] = (context, { activeJobs, dispatcher }) => {
    const { closing, log, store, clock, config } = context
    const stop = (id: string): void =>
      void activeJobs.stop(id, { kind: 'cancel', by: 'a user of another daemon' })
    const logFailure = (error: unknown): void => {
      if (!closing.aborted) log.warn({ err: error }, 'cannot read the changes of other daemons')
    }
    const stopIfCancelled = async (id: string): Promise<void> => {
      const job = await store.getJob(id)
      if (job !== undefined && job.cancelRequestedAt !== null) stop(id)
    }
    fleet.onChange(change => {
      if (closing.aborted) return
      local.emit(change)
      if (change.kind !== 'state') return
      dispatcher.wake()
      if (activeJobs.has(change.jobId)) stopIfCancelled(change.jobId).catch(logFailure)
    })
    const poll = async (): Promise<void> => {
      for (const id of await fleet.cancelRequests()) stop(id)
      for (const jobId of await fleet.failAbandoned(config.fleet.wait, clock.now())) {
        log.warn({ job: jobId }, 'the daemon of a job is gone; the job is lost')
        changes.emit({ jobId, kind: 'state' })
      }
    }
    const timer = setInterval(() => void poll().catch(logFailure), POLL_MS)
    closing.addEventListener('abort', () => clearInterval(timer), { once: true })
  }

  return { changes, start }
}
