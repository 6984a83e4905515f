import type { Job, JobEvent } from '../jobs/job.ts'
import { isTerminal } from '../jobs/states.ts'
import type { Store } from '../ports.ts'
import type { ChangeNotifier } from './change-notifier.ts'
import type { OutputPage, WaitOptions } from './deputy.ts'

/** Every wait reads the store at least this often, so that a lost notification cannot block a client for ever. */
const POLL_MS = 15_000
const EVENT_PAGE = 500

/** Waits for a status other than `since`, or for the end of the job. Returns the current job on timeout. */
export const waitForStatus = async (
  changes: ChangeNotifier,
  read: () => Promise<Job>,
  { since, timeoutMs, signal }: WaitOptions,
): Promise<Job> => {
  const deadline = performance.now() + timeoutMs
  let job = await read()
  const reached = (): boolean => isTerminal(job.state) || (since !== undefined && job.state !== since)
  while (!reached() && !signal.aborted) {
    const left = deadline - performance.now()
    if (left <= 0) break
    const listener = changes.listen(job.id)
    job = await read()
    if (reached()) {
      listener.close()
      break
    }
    await listener.wait(Math.min(left, POLL_MS), signal)
    job = await read()
  }
  return job
}

/** Yields pages of output until the job ends. Nothing is buffered for a slow reader: its next page is larger. */
export async function* followOutput(
  changes: ChangeNotifier,
  read: (cursor: number) => Promise<OutputPage>,
  { id, cursor, signal }: { id: string; cursor: number; signal: AbortSignal },
): AsyncGenerator<OutputPage> {
  let at = cursor
  while (!signal.aborted) {
    const listener = changes.listen(id)
    const page = await read(at).catch(error => {
      listener.close()
      throw error
    })
    at = page.next_cursor
    if (page.pieces.length > 0 || page.done) {
      listener.close()
      yield page
    } else await listener.wait(POLL_MS, signal)
    if (page.done) return
  }
}

/** Yields events in order from a cursor on; ends after the last event of a finished job. */
export async function* followEvents(
  changes: ChangeNotifier,
  store: Store,
  { id, after, signal }: { id?: string; after?: number; signal: AbortSignal },
  isOver: () => Promise<boolean>,
): AsyncGenerator<JobEvent> {
  let at = after ?? (id === undefined ? await store.lastEvent() : 0)
  while (!signal.aborted) {
    const listener = changes.listen(id)
    // Check this before the read: an event that follows the terminal state (machine destroyed) is then still read.
    const over = await isOver()
    const events = await store.events({
      ...(id !== undefined && { jobId: id }),
      after: at,
      limit: EVENT_PAGE,
    })
    for (const event of events) {
      at = event.seq
      yield event
    }
    if (events.length > 0) listener.close()
    else if (over) {
      listener.close()
      return
    } else await listener.wait(POLL_MS, signal)
  }
}
