import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import type { Certificate } from '../../../src/guest/certificate.ts'
import { renderApidoc } from './apidoc.ts'
import { type Backend, dispatch, type Incoming } from './dispatch.ts'
import { PveError } from './errors.ts'
import type { RequestFault } from './faults.ts'

export interface ServerOptions {
  readonly backend: Backend
  /** The node whose pveproxy this is. */
  readonly node: string
  readonly certificate: Certificate
  /** Versions before 8.4 tell the message in the reason phrase only. */
  readonly reasonOnly: boolean
  /** Told of each request, for tests that count. */
  readonly onRequest: (line: string) => void
}

const MAX_BODY = 512 * 1024
const REQUESTS_PER_CONNECTION = 100
const IDLE_MS = 5000
/** The empty line behind them counts, and with the 64th line nobody listens any more. */
const MAX_HEADERS = 62
/** How many a connection has had. */
const served = new WeakMap<object, number>()
const API = '/api2/json'

/** pveproxy as seen from outside: its limits, its habits with connections, its shapes of answers. */
export const createPveServer = (options: ServerOptions): Server => {
  const apidoc = renderApidoc(options.backend.operations)
  const modified = new Date(Math.floor(Date.now() / 1000) * 1000).toUTCString()
  const server = createServer(
    { cert: options.certificate.cert, key: options.certificate.key, maxHeaderSize: 8192 },
    (request, response) => {
      if (request.rawHeaders.length / 2 > MAX_HEADERS)
        return void setTimeout(() => request.socket.destroy(), IDLE_MS).unref()
      handle(options, request, response, { apidoc, modified }).catch(() => response.destroy())
    },
  )
  server.keepAliveTimeout = IDLE_MS
  // What has more is not answered either.
  server.on('clientError', (_, socket) => void setTimeout(() => socket.destroy(), IDLE_MS).unref())
  return server
}

const handle = async (
  options: ServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
  docs: { apidoc: string; modified: string },
): Promise<void> => {
  const url = new URL(request.url ?? '/', 'https://pve')
  const method = request.method ?? 'GET'
  served.set(request.socket, (served.get(request.socket) ?? 0) + 1)
  options.onRequest(`${method} ${url.pathname}${url.search}`)
  const fault = options.backend.faults.forRequest(method, url.pathname + url.search)
  if (fault?.delayMs) await sleep(fault.delayMs)
  if (fault?.drop === 'before') return void request.socket.destroy()
  try {
    if (fault?.status !== undefined)
      throw new PveError(fault.status, fault.message ?? fault.reason ?? 'injected fault')
    if (url.pathname === '/pve-docs/api-viewer/apidoc.js')
      return sendDocs(request, response, { ...docs, apidoc: options.backend.state.apidoc ?? docs.apidoc })
    const body = await readBody(request, method)
    const outcome = await dispatch(options.backend, incoming(request, method, url, body))
    await loseAnswer(options, request, fault)
    send(request, response, {
      status: 200,
      reason: 'OK',
      body: JSON.stringify({ data: outcome.data ?? null }),
      proxied: outcome.node !== undefined && outcome.node !== options.node,
    })
  } catch (error) {
    await fail(options, request, response, error)
  }
}

const incoming = (request: IncomingMessage, method: string, url: URL, body: Buffer): Incoming => {
  if (!url.pathname.startsWith(`${API}/`)) throw new PveError(501, `no such file '${url.pathname}'`)
  return {
    method,
    path: url.pathname.slice(API.length),
    query: url.searchParams,
    headers: request.headers,
    body,
  }
}

/** The work is done, but the caller will not hear of it. */
const loseAnswer = async (
  { backend }: ServerOptions,
  request: IncomingMessage,
  fault: RequestFault | undefined,
): Promise<void> => {
  if (fault?.drop === 'after') request.socket.destroy()
  if (!fault?.loseAnswer) return
  await sleep(backend.state.timing.proxyTimeoutMs)
  throw new PveError(596, 'Connection timed out')
}

const readBody = async (request: IncomingMessage, method: string): Promise<Buffer> => {
  if (method === 'HEAD') throw new PveError(501, "method 'HEAD' not available")
  if (request.headers['transfer-encoding']) throw new PveError(501, 'chunked transfer encoding not supported')
  const length = Number(request.headers['content-length'] ?? 0)
  if (length > 0 && (method === 'GET' || method === 'DELETE'))
    throw new PveError(501, `Unexpected content for method '${method}'`)
  const multipart = request.headers['content-type']?.startsWith('multipart/form-data')
  if (length > MAX_BODY && !multipart) throw new PveError(501, 'for data too large')
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

const fail = async (
  options: ServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
  error: unknown,
): Promise<void> => {
  const { status, errors, message } =
    error instanceof PveError ? error : new PveError(500, (error as Error).message)
  const reason = message.split('\n')[0]!
  if (status === 401) await sleep(options.backend.state.timing.authFailureMs)
  const empty = status === 401 || status >= 595
  const json = {
    data: null,
    ...(options.reasonOnly ? {} : { message: `${message}\n` }),
    ...(errors ? { errors } : {}),
  }
  const body = empty ? '' : status === 501 ? message : JSON.stringify(json)
  send(request, response, { status, reason, body, proxied: false })
}

interface Sent {
  status: number
  reason: string
  body: string
  proxied: boolean
}

const send = (
  request: IncomingMessage,
  response: ServerResponse,
  { status, reason, body, proxied }: Sent,
): void => {
  const zip = body.length > 1024 && /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))
  const bytes = zip ? gzipSync(body) : Buffer.from(body)
  const type = status === 501 ? 'text/plain' : 'application/json;charset=UTF-8'
  // A proxied answer carries the connection headers of both hops.
  const last = (served.get(request.socket) ?? 0) >= REQUESTS_PER_CONNECTION
  const connection = status >= 400 || last ? ['close'] : proxied ? ['close', 'Keep-Alive'] : ['Keep-Alive']
  const headers = [
    'Content-Type',
    type,
    'Content-Length',
    String(bytes.length),
    ...(zip ? ['Content-Encoding', 'gzip'] : []),
  ]
  response.writeHead(status, plainReason(reason), [
    ...headers,
    ...connection.flatMap(value => ['Connection', value]),
  ])
  response.end(bytes)
}

const sendDocs = (
  request: IncomingMessage,
  response: ServerResponse,
  { apidoc, modified }: { apidoc: string; modified: string },
): void => {
  if (request.headers['if-modified-since'] === modified) {
    response.writeHead(304).end()
    return
  }
  const zip = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))
  response.writeHead(200, {
    'content-type': 'application/javascript',
    'last-modified': modified,
    ...(zip ? { 'content-encoding': 'gzip' } : {}),
  })
  response.end(zip ? gzipSync(apidoc) : apidoc)
}

const plainReason = (reason: string): string => reason.replace(/[^\x20-\x7e]/g, '?').slice(0, 400)
