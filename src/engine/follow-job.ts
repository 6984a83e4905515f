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
  if (reached() || timeoutMs <= 0) return job
  const listener = changes.listen(job.id)
  try {
    for (;;) {
      job = await read()
      const left = deadline - performance.now()
      if (reached() || left <= 0 || signal.aborted) return job
      await listener.wait(Math.min(left, POLL_MS), signal)
    }
  } finally {
    listener.close()
  }
}

/** Yields pages of output until the job ends. Nothing is buffered for a slow reader: its next page is larger. */
export async function* followOutput(
  changes: ChangeNotifier,
  read: (cursor: number) => Promise<OutputPage>,
  { id, cursor, signal }: { id: string; cursor: number; signal: AbortSignal },
): AsyncGenerator<OutputPage> {
  const listener = changes.listen(id)
  try {
    for (let at = cursor; !signal.aborted; ) {
      const page = await read(at)
      at = page.next_cursor
      if (page.pieces.length > 0 || page.done) yield page
      else await listener.wait(POLL_MS, signal)
      if (page.done) return
    }
  } finally {
    listener.close()
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
  const listener = changes.listen(id)
  try {
    while (!signal.aborted) {
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
      if (events.length > 0) continue
      if (over) return
      await listener.wait(POLL_MS, signal)
    }
  } finally {
    listener.close()
  }
}
