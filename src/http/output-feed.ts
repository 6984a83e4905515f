import { setTimeout as sleep } from 'node:timers/promises'
import { encodePage } from '../client/encode-output.ts'
import type { Deputy, OutputPage } from '../engine/deputy.ts'
import { abortable } from '../jobs/deadline.ts'
import { endId } from './resume.ts'
import { message } from './sse.ts'

/**
 * Output for many watchers. Watchers with the same cursor share one read of the store, one wake-up and one encoded
 * message. A watcher that falls behind reads from its own cursor and delays nobody. Nothing is queued per watcher.
 */
export interface OutputFeeds {
  follow(jobId: string, cursor: number, signal: AbortSignal): AsyncGenerator<Uint8Array, void, undefined>
}

interface Frame {
  /** Absent when no output arrived within the wait. */
  readonly bytes: Uint8Array | undefined
  readonly next: number
  readonly end: Uint8Array | undefined
}

interface Feed {
  watchers: number
  readonly reads: Map<number, Promise<Frame>>
  /** Cursor and time of the last page that reached the end of the output. */
  edge: { readonly cursor: number; readonly at: number }
  readonly stop: AbortController
}

const PAGE_BYTES = 32 * 1024
const WAIT_MS = 30_000
/** Messages per second over all watchers of a job at the end of its output; output in between is joined. */
const MESSAGES_PER_SECOND = 4000
const KEPT_READS = 8

export const createOutputFeeds = (deputy: Pick<Deputy, 'output' | 'get'>): OutputFeeds => {
  const feeds = new Map<string, Feed>()

  const join = (jobId: string): Feed => {
    const feed = feeds.get(jobId) ?? newFeed()
    feeds.set(jobId, feed)
    feed.watchers += 1
    return feed
  }

  const leave = (jobId: string, feed: Feed): void => {
    feed.watchers -= 1
    if (feed.watchers > 0) return
    feed.stop.abort()
    if (feeds.get(jobId) === feed) feeds.delete(jobId)
  }

  const read = (jobId: string, feed: Feed, cursor: number): Promise<Frame> => {
    const shared = feed.reads.get(cursor)
    if (shared !== undefined) return shared
    const frame = readFrame(deputy, jobId, feed, cursor)
    // A negative cursor counts from the end, so a later request means another place and the read cannot be shared.
    if (cursor < 0) return frame
    feed.reads.set(cursor, frame)
    const forget = () => feed.reads.delete(cursor)
    frame.then(({ bytes }) => (bytes === undefined ? forget() : dropOldest(feed)), forget)
    return frame
  }

  return {
    async *follow(jobId, start, signal) {
      const feed = join(jobId)
      let cursor = start
      try {
        for (;;) {
          const frame = await abortable(read(jobId, feed, cursor), signal)
          if (frame.bytes !== undefined) yield frame.bytes
          if (frame.end !== undefined) return yield frame.end
          cursor = frame.next
        }
      } finally {
        leave(jobId, feed)
      }
    },
  }
}

const newFeed = (): Feed => ({
  watchers: 0,
  reads: new Map(),
  edge: { cursor: -1, at: 0 },
  stop: new AbortController(),
})

const readFrame = async (
  deputy: Pick<Deputy, 'output' | 'get'>,
  jobId: string,
  feed: Feed,
  cursor: number,
): Promise<Frame> => {
  const { signal } = feed.stop
  const pause = pauseBefore(feed, cursor)
  if (pause >= 1) await sleep(pause, undefined, { signal })
  const page = await deputy.output(jobId, { cursor, maxBytes: PAGE_BYTES, waitMs: WAIT_MS, signal })
  const wire = encodePage(page)
  if (sizeOf(page) < PAGE_BYTES) feed.edge = { cursor: wire.next_cursor, at: performance.now() }
  const empty = page.pieces.length === 0 && !page.done
  return {
    bytes: empty ? undefined : message(wire.next_cursor, 'output', wire),
    next: wire.next_cursor,
    end: page.done ? await endFrame(deputy, jobId, wire.next_cursor) : undefined,
  }
}

const endFrame = async (deputy: Pick<Deputy, 'get'>, jobId: string, cursor: number): Promise<Uint8Array> => {
  const { job_id, status, exit_code } = await deputy.get(jobId)
  return message(endId(cursor), 'end', { job_id, status, exit_code })
}

/**
 * Without a pause, 200 watchers of a chatty job would use up a core; at ten messages per second each, they do not.
 */
const pauseBefore = ({ edge, watchers }: Feed, cursor: number): number =>
  edge.cursor === cursor ? edge.at + (watchers * 1000) / MESSAGES_PER_SECOND - performance.now() : 0

const sizeOf = (page: OutputPage): number =>
  page.pieces.reduce((sum, piece) => sum + ('data' in piece ? piece.data.length : 0), 0)

/** Late watchers of a recent page reuse it; older pages are read again. */
const dropOldest = (feed: Feed): void => {
  for (const cursor of feed.reads.keys()) {
    if (feed.reads.size <= KEPT_READS) return
    feed.reads.delete(cursor)
  }
}
