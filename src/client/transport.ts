import {
  Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http'
import { request as httpsRequest, Agent as TlsAgent } from 'node:https'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
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

/** HTTP to a daemon. Every failure is an AppError: the daemon's own error, or `unavailable`. */
export interface Transport {
  open(call: Call): Promise<IncomingMessage>
  json<T>(call: Call): Promise<T>
  /** What a WebSocket to the same daemon needs. */
  readonly address: string | URL
  close(): void
}

const ANSWER_MS = 30_000

/** Connects to a control socket (a path) or to a daemon's HTTP address. */
export const createTransport = (address: string | URL, headers: Record<string, string>): Transport => {
  const isTls = address instanceof URL && address.protocol === 'https:'
  const agent = new (isTls ? TlsAgent : Agent)({ keepAlive: true, maxFreeSockets: 4 })

  const open = async (call: Call): Promise<IncomingMessage> => {
    const response = await exchange({ address, agent, headers, call })
    const status = response.statusCode ?? 0
    if (status >= 200 && status < 300) return response
    throw await errorOf(response, call)
  }

  return {
    address,
    open,
    json: async <T>(call: Call): Promise<T> => {
      const body = await readText(await open(call), address)
      // An empty body is the answer of a call that returns nothing.
      return body === '' ? (undefined as T) : JSON.parse(body)
    },
    close: () => agent.destroy(),
  }
}

interface Exchange {
  address: string | URL
  agent: Agent
  headers: Record<string, string>
  call: Call
  /** Retry once on a new connection when the daemon has closed a keep-alive connection in the meantime. */
  retry?: boolean
}

const exchange = (options: Exchange): Promise<IncomingMessage> => {
  const { address, agent, call, retry = true } = options
  const method = call.method ?? 'GET'
  const payload = call.json === undefined ? undefined : Buffer.from(JSON.stringify(call.json))
  return new Promise((resolve, reject) => {
    const request = send(address, {
      agent,
      method,
      path: pathOf(call),
      headers: {
        ...options.headers,
        ...call.headers,
        ...(payload && { 'content-type': 'application/json', 'content-length': payload.length }),
      },
      ...(call.signal && { signal: call.signal }),
    })
    const answerMs = call.answerMs ?? ANSWER_MS
    const timer = setTimeout(() => request.destroy(answerTimeout(answerMs)), answerMs)
    timer.unref()
    request.once('response', response => {
      clearTimeout(timer)
      resolve(response)
    })
    request.on('error', error => {
      clearTimeout(timer)
      if (
        retry &&
        request.reusedSocket &&
        method === 'GET' &&
        !call.signal?.aborted &&
        isConnectionLost(error)
      )
        exchange({ ...options, retry: false }).then(resolve, reject)
      else reject(call.signal?.aborted ? call.signal.reason : asUnavailable(error, address))
    })
    if (call.body) upload(request, call.body)
    else request.end(payload)
  })
}

const send = (
  address: string | URL,
  options: Omit<RequestOptions, 'headers'> & { path: string; headers: Record<string, string | number> },
): ClientRequest => {
  // A Unix socket needs no host name, but HTTP/1.1 requires the header.
  if (typeof address === 'string')
    return httpRequest({
      ...options,
      socketPath: address,
      headers: { host: 'localhost', ...options.headers },
    })
  const path = address.pathname.replace(/\/$/, '') + options.path
  const target = { hostname: address.hostname, port: address.port, path }
  return (address.protocol === 'https:' ? httpsRequest : httpRequest)({ ...options, ...target })
}

/** A failure of the source ends the request; an early answer of the daemon (too large) ends the upload. */
const upload = (request: ClientRequest, body: AsyncIterable<Uint8Array>): void => {
  const source = Readable.from(body, { objectMode: false })
  source.on('error', error => request.destroy(error))
  request.once('close', () => source.destroy())
  source.pipe(request)
}

const pathOf = ({ path, query = {} }: Call): string => {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value))
  return search.size === 0 ? path : `${path}?${search}`
}

const errorOf = async (response: IncomingMessage, call: Call): Promise<AppError> => {
  const body = parseErrorBody(await readText(response, '').catch(() => ''))
  if (body) return AppError.fromBody(body)
  return new AppError(
    'internal',
    `The daemon answered ${response.statusCode} to ${call.method ?? 'GET'} ${call.path} without an error message.`,
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

const readText = async (response: IncomingMessage, address: string | URL): Promise<string> => {
  try {
    return await text(response)
  } catch (error) {
    throw asUnavailable(error, address)
  }
}

const CONNECTION_LOST = new Set(['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ECONNABORTED', 'ENOTCONN'])

/** The daemon is gone: no socket, no listener, or a lost connection. */
const isConnectionLost = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && CONNECTION_LOST.has(String(error.code))

/** Whether a call got no answer at all, as opposed to an `unavailable` answer of the daemon. */
export const isDisconnected = (error: AppError): boolean => isConnectionLost(error.cause)

const asUnavailable = (error: unknown, address: string | URL): unknown => {
  if (error instanceof AppError || !isConnectionLost(error)) return error
  return new AppError('unavailable', `No Deputy daemon answers on ${address}.`, {
    hint: 'Check it: deputy daemon status. Start it: deputy daemon restart',
    cause: error,
  })
}

const answerTimeout = (ms: number): AppError =>
  new AppError('unavailable', `The Deputy daemon did not answer within ${Math.round(ms / 1000)} s.`, {
    hint: 'Read its log (deputy daemon status shows the path), or run deputy daemon restart',
  })
