import { AppError, type ErrorBody } from '../jobs/errors.ts'

export interface Call {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly json?: unknown
  readonly body?: AsyncIterable<Uint8Array>
  readonly headers?: Readonly<Record<string, string>>
  /** Time limit until the daemon starts to answer. */
  readonly answerMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface Answer {
  readonly status: number
  /** NaN when the daemon does not tell it. */
  readonly size: number
  readonly bytes: AsyncIterable<Uint8Array>
}

/**
 * HTTP to a daemon: `http-transport.ts` in Node, `fetch-transport.ts` in a browser. Every failure is an AppError: the
 * daemon's own error, or `unavailable`.
 */
export interface Transport {
  open(call: Call): Promise<Answer>
  json<T>(call: Call): Promise<T>
  close(): void
}

/** How the calls reach the daemon. */
export interface Connection {
  readonly transport: Transport
  /** Retries when the daemon died during the call. Only for idempotent calls. */
  retry<T>(call: Call): Promise<T>
  /** Called when a stream has lost the daemon, which then continues where it was: restarts the daemon, or waits. */
  readonly revive?: (signal: AbortSignal) => Promise<void>
  /** A stream fails when no connection succeeds for this long. */
  readonly giveUpMs: number
}

export const ANSWER_MS = 30_000

/** Path and query of a call. */
export const targetOf = ({ path, query = {} }: Call): string => {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value))
  return search.size === 0 ? path : `${path}?${search}`
}

export const readText = async (bytes: AsyncIterable<Uint8Array>): Promise<string> => {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of bytes) text += decoder.decode(chunk, { stream: true })
  return text + decoder.decode()
}

/** An empty body is the answer of a call that returns nothing. */
export const parseAnswer = <T>(body: string): T => (body === '' ? (undefined as T) : JSON.parse(body))

/** The error in an answer that is not a success. */
export const errorOf = (call: Call, status: number, body: string): AppError => {
  const error = parseErrorBody(body)
  if (error) return AppError.fromBody(error)
  return new AppError(
    'internal',
    `The daemon answered ${status} to ${call.method ?? 'GET'} ${call.path} without an error message.`,
    { hint: 'Read its log; deputy daemon status shows the path.' },
  )
}

const parseErrorBody = (source: string): ErrorBody | undefined => {
  try {
    const parsed: unknown = JSON.parse(source)
    const error =
      typeof parsed === 'object' && parsed !== null && 'error' in parsed ? parsed.error : undefined
    if (typeof error !== 'object' || error === null) return undefined
    return 'code' in error && 'message' in error ? (error as ErrorBody) : undefined
  } catch {
    return undefined
  }
}

export const answerTimeout = (ms: number): AppError =>
  new AppError('unavailable', `The Deputy daemon did not answer within ${Math.round(ms / 1000)} s.`, {
    hint: 'Read its log (deputy daemon status shows the path), or run deputy daemon restart',
  })
