import { AppError } from '../jobs/errors.ts'
import {
  ANSWER_MS,
  type Answer,
  answerTimeout,
  type Call,
  errorOf,
  parseAnswer,
  readText,
  type Transport,
  targetOf,
} from './transport.ts'

export interface FetchOptions {
  /** Where the daemon is; the page itself unless told otherwise. */
  readonly base?: string
  headers(): Readonly<Record<string, string>>
  /** Called with the status of every answer, and with undefined when the daemon does not answer. */
  onAnswer?(status: number | undefined): void
}

/** Calls the daemon with `fetch`, as a page of it does. It sends JSON only. */
export const createFetchTransport = ({ base = '', headers, onAnswer }: FetchOptions): Transport => {
  const send = async (call: Call): Promise<Response> => {
    const { method = 'GET', json, signal, answerMs = ANSWER_MS } = call
    const abort = new AbortController()
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      abort.abort()
    }, answerMs)
    // It stays until the body has been read, too.
    signal?.addEventListener('abort', () => abort.abort(), { once: true })
    if (signal?.aborted) abort.abort()
    try {
      return await fetch(base + targetOf(call), {
        method,
        headers: {
          ...headers(),
          ...(json !== undefined && { 'content-type': 'application/json' }),
          ...call.headers,
        },
        ...(json !== undefined && { body: JSON.stringify(json) }),
        signal: abort.signal,
      })
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      onAnswer?.(undefined)
      throw isLate ? answerTimeout(answerMs) : lost(error)
    } finally {
      clearTimeout(timer)
    }
  }

  const open = async (call: Call): Promise<Answer> => {
    const response = await send(call)
    onAnswer?.(response.status)
    const bytes = readBody(response, error => {
      if (call.signal?.aborted) return call.signal.reason
      onAnswer?.(undefined)
      return lost(error)
    })
    if (!response.ok) throw errorOf(call, response.status, await readText(bytes).catch(() => ''))
    const size = Number(response.headers.get('content-length') ?? Number.NaN)
    return { status: response.status, size, bytes }
  }

  return {
    open,
    json: async <T>(call: Call): Promise<T> => parseAnswer(await readText((await open(call)).bytes)),
    close: () => {},
  }
}

const lost = (cause: unknown): AppError =>
  new AppError('unavailable', 'The daemon does not answer.', { hint: 'deputy daemon status', cause })

/** Not every browser iterates over the stream itself. */
async function* readBody(
  { body }: Response,
  asError: (error: unknown) => unknown,
): AsyncGenerator<Uint8Array> {
  if (body === null) return
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } catch (error) {
    throw asError(error)
  } finally {
    await reader.cancel().catch(() => {})
  }
}
