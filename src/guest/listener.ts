import { once } from 'node:events'
import { createServer as createHttp, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { AppError, toAppError } from '../jobs/errors.ts'
import { handleCallback } from './callback-routes.ts'
import { type EgressOptions, isForward, serveForward, serveTunnel } from './egress-routes.ts'
import { type Exchange, handleGuest } from './guest-routes.ts'
import { json } from './http-replies.ts'
import type { MachineHandler } from './machine-handler.ts'
import { createRateLimiter, type GuestLimits, type RateLimiter } from './rate-limiter.ts'
import type { Seed } from './seed.ts'
import { createTlsOrPlainServer } from './tls-or-plain-server.ts'
import { hashToken } from './token-hash.ts'

export interface GuestListenerOptions extends EgressOptions {
  readonly host: string
  readonly port: number
  readonly tls?: { readonly cert: string; readonly key: string }
  /** Finds a machine by the SHA-256 of its token; the token itself is not stored. */
  machine(tokenHash: string, token: string, from: string): MachineHandler | undefined
  /** The seed behind an unguessable name, for machines that fetch it over HTTP. */
  seed?(name: string): Seed | undefined
  /** True after a restart, while machines may not be restored yet: unknown tokens get 503 (retry) instead of 401. */
  mayBeUnknown?(): boolean
  /** Rate limits for each machine and each address; absent: unlimited. */
  readonly limits?: GuestLimits
  readonly onError?: (error: unknown) => void
  /** Called after each response. `kind` is one of a fixed set, so a machine cannot create new metric labels. */
  readonly onCall?: (kind: string, status: number) => void
}

const KINDS = [
  'health',
  'seed',
  'work',
  'begin',
  'inputs',
  'output',
  'heartbeat',
  'status',
  'files',
  'complete',
  'refused',
]

/** Maps a request path to one of KINDS. */
const kindOf = (url: string | undefined): string => {
  const words = (url ?? '').split('?', 1)[0]!.split('/')
  return words.findLast(word => KINDS.includes(word)) ?? 'other'
}

export interface GuestListener {
  readonly port: number
  close(): Promise<void>
}

/** Starts the listener that untrusted machines can reach. It serves only machines. */
export const startGuestListener = async (options: GuestListenerOptions): Promise<GuestListener> => {
  const closing = new AbortController()
  const { onCall, limits } = options
  const rateLimiter = limits && createRateLimiter(limits)
  const served = { ...options, rateLimiter, given: new WeakMap<Socket, string>() }
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const kind = isForward(request.url) ? 'proxy' : kindOf(request.url)
    response.once('finish', () => hangUp(request))
    if (onCall !== undefined) response.once('finish', () => onCall(kind, response.statusCode))
    if (kind === 'proxy') return serveForward(served, request, response)
    respond(served, request, response, closing.signal).catch(error => {
      options.onError?.(error)
      fail(response, error)
    })
  }
  /** With TLS configured, plain HTTP is accepted for proxy requests only. */
  const clear = (request: IncomingMessage, response: ServerResponse) =>
    options.tls && !isForward(request.url)
      ? json(response.setHeader('connection', 'close'), 400, { error: 'This address speaks HTTPS' })
      : listener(request, response)
  const plain = withTunnels(createHttp(clear), options)
  const server = options.tls
    ? createTlsOrPlainServer(withTunnels(createHttps(options.tls, listener), options), plain)
    : plain
  const sockets = new Set<Socket>()
  server.maxConnections = 2000
  if (rateLimiter) server.on('connection', rateLimiter.connected)
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await once(server.listen(options.port, options.host), 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise(resolve => {
        closing.abort()
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

const withTunnels = (server: Server, options: GuestListenerOptions): Server => {
  server.headersTimeout = 15_000
  server.requestTimeout = 0
  return server.on('connect', async (request: IncomingMessage, client: Duplex, head: Buffer) => {
    const status = await serveTunnel(options, request, client, head)
    options.onCall?.('proxy', status)
  })
}

/** Gives a client that is still sending time to read the response. */
const LINGER_MS = 2000

/** Closes the connection of a client that keeps sending its request body after the response. */
const hangUp = (request: IncomingMessage): void => {
  if (request.complete) return
  const timer = setTimeout(() => request.complete || request.socket.destroy(), LINGER_MS)
  request.once('close', () => clearTimeout(timer))
}

const respond = async (
  options: GuestListenerOptions & { readonly rateLimiter: RateLimiter | undefined } & Pick<Exchange, 'given'>,
  request: IncomingMessage,
  response: ServerResponse,
  closing: AbortSignal,
): Promise<void> => {
  const [pathname = '/', query = ''] = (request.url ?? '/').split('?', 2)
  const parts = pathname.split('/').filter(part => part !== '')
  const { rateLimiter, given } = options
  const seed = parts[0] === 'seed' ? options.seed?.(parts[1] ?? '') : undefined
  if (seed) return serveSeed(seed, parts[2], response)
  const token = tokenOf(request)
  const from = request.socket.remoteAddress ?? ''
  const hashed = token === undefined ? '' : hashToken(token)
  const machine = token === undefined ? undefined : options.machine(hashed, token, from)
  const admitted = machine
    ? rateLimiter?.machine(hashed, request, response)
    : rateLimiter?.stranger(request, response)
  if (admitted === false) return
  if (pathname === '/health') return json(response, 200, { status: 'ok' })
  if (parts[0] === 'seed') return json(response, 404, { error: 'Not found' })
  if (machine === undefined) {
    // Do not read the body of an unauthenticated request.
    response.setHeader('connection', 'close')
    const status = options.mayBeUnknown?.() ? 503 : 401
    return json(response, status, { error: status === 401 ? 'Unauthorized' : 'Try again later' })
  }
  const exchange = { machine, request, response, closing, given }
  if (parts[0] === 'guest' && parts[1] === 'v1') return handleGuest(exchange, parts.slice(2), query)
  if (parts[0] === 'callback') return handleCallback(exchange, parts.slice(1))
  json(response, 404, { error: 'Not found' })
}

const tokenOf = (request: IncomingMessage): string | undefined =>
  /^Bearer ([\x21-\x7e]{16,256})$/.exec(request.headers.authorization ?? '')?.[1]

const serveSeed = (found: Seed, file = '', response: ServerResponse): void => {
  const content = {
    'meta-data': found.metaData,
    'user-data': found.userData,
    'vendor-data': found.vendorData,
    'network-config': found.networkConfig,
  }[file]
  if (content === undefined) json(response, 404, { error: 'Not found' })
  else response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end(content)
}

const fail = (response: ServerResponse, error: unknown): void => {
  if (response.headersSent || response.destroyed) return void response.destroy()
  const known = error instanceof AppError ? error : toAppError(error)
  response.setHeader('connection', 'close')
  json(response, known.httpStatus, { error: known.message })
}
