import { AppError } from '../jobs/errors.ts'
import { parseServerEvents } from './parse-sse.ts'
import type { Connection } from './transport.ts'

export interface FollowOptions<T> {
  readonly connection: Connection
  readonly path: string
  /** The cursor to resume from. */
  readonly after?: string
  readonly isLast?: (value: T) => boolean
  readonly signal: AbortSignal
}

const PAUSE_MS = 100

/**
 * Follows a stream of JSON events to its end, across disconnects and restarts of the daemon. Each new connection
 * resumes after the last received event, so nothing is lost or duplicated.
 */
export async function* followStream<T>(options: FollowOptions<T>): AsyncGenerator<T> {
  const { connection, path, isLast, signal } = options
  const { transport, revive, giveUpMs } = connection
  let cursor = options.after
  let failingSince: number | undefined
  while (!signal.aborted) {
    try {
      const response = await transport.open({
        path,
        headers: {
          accept: 'text/event-stream',
          ...(cursor !== undefined && { 'last-event-id': cursor }),
        },
        signal,
      })
      failingSince = undefined
      // 204: the client has already received the end of the stream.
      if (response.status === 204) return
      for await (const event of parseServerEvents(response.bytes)) {
        if (event.id !== '') cursor = event.id
        if (event.event === 'error') throw AppError.fromBody(JSON.parse(event.data).error)
        // Sent after the last event of a job. A stream that ends without it was cut.
        if (event.event === 'end') return
        const value = JSON.parse(event.data) as T
        yield value
        if (isLast?.(value)) return
      }
    } catch (error) {
      if (signal.aborted) break
      if (!isTransient(error)) throw error
      failingSince ??= performance.now()
      if (performance.now() - failingSince > giveUpMs) throw error
    }
    await revive?.(signal)
    // A daemon that ends its streams at shutdown must not be asked again in a tight loop.
    await pause(PAUSE_MS, signal)
  }
  signal.throwIfAborted()
}

/** A lost connection or a starting daemon is transient; refusals (not found, denied) are final. */
const isTransient = (error: unknown): boolean =>
  error instanceof AppError ? error.code === 'unavailable' : error instanceof Error && 'code' in error

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
  })
