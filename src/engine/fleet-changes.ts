import type { Fleet } from '../ports.ts'
import type { ActiveJobs } from './active-jobs.ts'
import { createAdoption } from './adopt-machines.ts'
import { type ChangeNotifier, createChangeNotifier } from './change-notifier.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { EngineContext } from './engine-context.ts'
import type { Resume } from './resume-machine.ts'

/** How late a cancellation takes effect when its notification was lost, and jobs of lost daemons fail. */
const POLL_MS = 5000

interface Parts {
  readonly activeJobs: ActiveJobs
  readonly dispatcher: Dispatcher
  readonly resume: Resume
}

/** Listeners of this daemon hear of the changes of all daemons, and the other way round. */
export interface SharedChanges {
  readonly changes: ChangeNotifier
  /**
   * Passes on the changes of other daemons, stops jobs that were cancelled through one of them, and takes over or fails
   * the jobs of those that are gone.
   */
  start(context: EngineContext, parts: Parts): void
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

  const start: SharedChanges['start'] = (context, { activeJobs, dispatcher, resume }) => {
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
    const stopCancelled = async (): Promise<void> => {
      for (const id of await fleet.cancelRequests()) stop(id)
    }
    const adoptMachines = createAdoption(context, fleet, resume)
    const failAbandoned = async (): Promise<void> => {
      for (const jobId of await fleet.failAbandoned(config.fleet.wait, clock.now())) {
        log.warn({ job: jobId }, 'the daemon of a job is gone; the job is lost')
        changes.emit({ jobId, kind: 'state' })
      }
    }
    let isAdopting = false
    const poll = async (): Promise<void> => {
      await stopCancelled().catch(logFailure)
      // A node that does not answer must not delay the next cancellation.
      if (isAdopting) return
      isAdopting = true
      await adoptMachines().catch(logFailure)
      await failAbandoned().catch(logFailure)
      isAdopting = false
    }
    const timer = setInterval(() => void poll(), POLL_MS)
    closing.addEventListener('abort', () => clearInterval(timer), { once: true })
  }

  return { changes, start }
}
