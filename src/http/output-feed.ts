import { setTimeout as sleep } from 'node:timers/promises'
import { encodePage } from '../control/wire.ts'
import type { Deputy, OutputPage } from '../engine/deputy.ts'
import { endId } from './resume.ts'
import { message } from './sse.ts'

/**
 * Output for many watchers. Those that wait at the same place share one read of the store, one wake-up and
 * one encoded message; one that falls behind reads again from its own place and holds nobody up. Nothing is
 * queued for anybody.
 */
export interface OutputFeeds {
  follow(jobId: string, cursor: number, signal: AbortSignal): AsyncGenerator<Uint8Array, void, undefined>
}

interface Frame {
  /** Absent: nothing came within the time. */
  readonly bytes: Uint8Array | undefined
  readonly next: number
  readonly end: Uint8Array | undefined
}

interface Feed {
  watchers: number
  readonly reads: Map<number, Promise<Frame>>
  /** Where the last page that held all there was ended, and when. */
  edge: { readonly cursor: number; readonly at: number }
  readonly stop: AbortController
}

const PAGE_BYTES = 32 * 1024
const WAIT_MS = 30_000
/** Messages a second over all watchers of a job at the live edge; what comes in between is joined. */
const MESSAGES_PER_SECOND = 4000
const KEPT_READS = 4

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
    // Counted from the end it is another place for everybody who asks later.
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
          const frame = await orAbort(read(jobId, feed, cursor), signal)
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

/** Two hundred watchers of a chatty job would cost it the processor; ten messages a second each do not. */
const pauseBefore = ({ edge, watchers }: Feed, cursor: number): number =>
  edge.cursor === cursor ? edge.at + (watchers * 1000) / MESSAGES_PER_SECOND - performance.now() : 0

const sizeOf = (page: OutputPage): number =>
  page.pieces.reduce((sum, piece) => sum + ('data' in piece ? piece.data.length : 0), 0)

/** Late watchers of the same page find it; older ones are read again. */
const dropOldest = (feed: Feed): void => {
  for (const cursor of feed.reads.keys()) {
    if (feed.reads.size <= KEPT_READS) return
    feed.reads.delete(cursor)
  }
}

const orAbort = <T>(promise: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
