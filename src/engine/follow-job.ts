import type { Job, JobEvent } from '../jobs/job.ts'
import { isTerminal } from '../jobs/states.ts'
import type { Store } from '../ports.ts'
import type { Signals } from './change-notifier.ts'
import type { OutputPage, WaitOptions } from './deputy.ts'

/** Every wait looks again this often at the least, so that nothing hangs on a signal that never came. */
const LOOK_MS = 15_000
const EVENTS = 500

/** Waits for a status other than `since`, or for the end; gives what there is when the time is over. */
export const waitFor = async (
  signals: Signals,
  read: () => Promise<Job>,
  { since, timeoutMs, signal }: WaitOptions,
): Promise<Job> => {
  const deadline = performance.now() + timeoutMs
  let job = await read()
  const reached = (): boolean => isTerminal(job.state) || (since !== undefined && job.state !== since)
  while (!reached() && !signal.aborted) {
    const left = deadline - performance.now()
    if (left <= 0) break
    const alarm = signals.arm(job.id)
    job = await read()
    if (reached()) {
      alarm.disarm()
      break
    }
    await alarm.wait(Math.min(left, LOOK_MS), signal)
    job = await read()
  }
  return job
}

/** Pages of output as they come, to the end of the job. A slow reader reads larger pages, nothing is held for it. */
export async function* follow(
  signals: Signals,
  read: (cursor: number) => Promise<OutputPage>,
  { id, cursor, signal }: { id: string; cursor: number; signal: AbortSignal },
): AsyncGenerator<OutputPage> {
  let at = cursor
  while (!signal.aborted) {
    const alarm = signals.arm(id)
    const page = await read(at).catch(error => {
      alarm.disarm()
      throw error
    })
    at = page.next_cursor
    if (page.pieces.length > 0 || page.done) {
      alarm.disarm()
      yield page
    } else await alarm.wait(LOOK_MS, signal)
    if (page.done) return
  }
}

/** Events in order from a cursor on; ends after the last event of a finished job. */
export async function* followEvents(
  signals: Signals,
  store: Store,
  { id, after, signal }: { id?: string; after?: number; signal: AbortSignal },
  isOver: () => Promise<boolean>,
): AsyncGenerator<JobEvent> {
  let at = after ?? (id === undefined ? await store.lastEvent() : 0)
  while (!signal.aborted) {
    const alarm = signals.arm(id)
    // Asked before reading: an event that comes after a terminal state (a machine gone) is read all the same.
    const over = await isOver()
    const events = await store.events({ ...(id !== undefined && { jobId: id }), after: at, limit: EVENTS })
    for (const event of events) {
      at = event.seq
      yield event
    }
    if (events.length > 0) alarm.disarm()
    else if (over) {
      alarm.disarm()
      return
    } else await alarm.wait(LOOK_MS, signal)
  }
}
