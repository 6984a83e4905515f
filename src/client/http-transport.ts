import {
  Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http'
import { request as httpsRequest, Agent as TlsAgent } from 'node:https'
import { Readable } from 'node:stream'
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

/** A transport that also tells where the daemon is, as a WebSocket to it needs. */
export interface HttpTransport extends Transport {
  readonly address: string | URL
}

/** Connects to a control socket (a path) or to a daemon's HTTP address. */
export const createHttpTransport = (
  address: string | URL,
  headers: Record<string, string>,
): HttpTransport => {
  const isTls = address instanceof URL && address.protocol === 'https:'
  const agent = new (isTls ? TlsAgent : Agent)({ keepAlive: true, maxFreeSockets: 4 })

  const open = async (call: Call): Promise<Answer> => {
    const response = await exchange({ address, agent, headers, call })
    const status = response.statusCode ?? 0
    if (status >= 200 && status < 300)
      return { status, size: Number(response.headers['content-length'] ?? Number.NaN), bytes: response }
    throw errorOf(call, status, await readText(response).catch(() => ''))
  }

  return {
    address,
    open,
    json: async <T>(call: Call): Promise<T> => {
      const { bytes } = await open(call)
      const body = await readText(bytes).catch(error => {
        throw asUnavailable(error, address)
      })
      return parseAnswer(body)
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
      path: targetOf(call),
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
