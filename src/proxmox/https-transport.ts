import type { TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { buildConnector, Pool } from 'undici'
import { AppError } from '../jobs/errors.ts'
import type { Endpoint } from './endpoints.ts'
import type { ApiResponse } from './proxmox-errors.ts'
import { loadTlsTrust, type TlsTrust } from './tls.ts'
import type { TlsSettings } from './tls-settings.ts'

export interface OutgoingRequest {
  readonly method: string
  /** Encoded, with the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>
  readonly timeoutMs: number
  readonly signal?: AbortSignal
}

/** The certificate of the last connection to a host. */
export interface SeenCertificate {
  readonly fingerprint: string
  readonly validTo: Date
}

export interface Transport {
  send(endpoint: Endpoint, request: OutgoingRequest): Promise<ApiResponse>
  /** Undefined before the first connection. */
  certificate(endpoint: Endpoint): SeenCertificate | undefined
  close(): Promise<void>
}

/** The request cannot have reached Proxmox VE, so another endpoint may be tried even for a write. */
export class ConnectFailure extends Error {
  // undici keeps reconnecting for ever on some of its own codes, but reports this one to the caller.
  readonly code = 'DEPUTY_CONNECT'
}

/** pveproxy closes an idle connection after 5 s, and any connection after 100 requests. */
const KEEP_ALIVE_MS = 4000
const REQUESTS_PER_CONNECTION = 90
/** One host forwards the calls to all nodes, so a few hanging nodes must leave connections for the others. */
const CONNECTIONS = 32
const CONNECT_TIMEOUT_MS = 10_000
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024

export const createTransport = (tls: TlsSettings): Transport => {
  const pools = new Map<string, Promise<Pool>>()
  const seen = new Map<string, SeenCertificate>()
  let trust: Promise<TlsTrust> | undefined
  let closed = false

  const poolFor = (endpoint: Endpoint): Promise<Pool> => {
    if (closed) throw new AppError('unavailable', 'The Proxmox VE client is closed.', { retryable: false })
    trust ??= loadTlsTrust(tls)
    const pool =
      pools.get(endpoint.origin) ??
      openPool(endpoint, trust, certificate => seen.set(endpoint.origin, certificate))
    pools.set(endpoint.origin, pool)
    return pool
  }

  return {
    send: async (endpoint, { timeoutMs, signal, ...request }) => {
      const pool = await poolFor(endpoint)
      const response = await pool.request({
        ...request,
        method: request.method as 'GET',
        body: (request.body ?? null) as string | null,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
        signal: signal ?? null,
      })
      const raw = await readAll(response.body)
      const body = response.headers['content-encoding'] === 'gzip' ? await inflate(raw) : raw
      return { status: response.statusCode, reason: response.statusText, body }
    },
    certificate: endpoint => seen.get(endpoint.origin),
    close: async () => {
      closed = true
      for (const pool of await Promise.allSettled(pools.values())) {
        if (pool.status === 'fulfilled') await pool.value.destroy()
      }
      pools.clear()
    },
  }
}

/** Loads undici on the first call, because that takes 60 ms. */
const openPool = async (
  endpoint: Endpoint,
  trust: Promise<TlsTrust>,
  onSeen: (certificate: SeenCertificate) => void,
): Promise<Pool> => {
  const [undici, trusted] = await Promise.all([import('undici'), trust])
  return new undici.Pool(endpoint.origin, {
    connect: connector(undici.buildConnector, endpoint, trusted, onSeen),
    connections: CONNECTIONS,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    maxRequestsPerClient: REQUESTS_PER_CONNECTION,
  })
}

const connector = (
  build: typeof buildConnector,
  endpoint: Endpoint,
  trust: TlsTrust,
  onSeen: (certificate: SeenCertificate) => void,
): buildConnector.connector => {
  // The handshake always completes, so that the check can report the certificate in its error.
  const connect = build({
    rejectUnauthorized: false,
    secureContext: trust.context,
    timeout: CONNECT_TIMEOUT_MS,
    maxCachedSessions: 0,
  })
  return (options, callback) =>
    connect(options, (error, socket) => {
      if (error) return callback(new ConnectFailure(error.message || String(error), { cause: error }), null)
      const { fingerprint256, valid_to } = (socket as TLSSocket).getPeerCertificate()
      onSeen({ fingerprint: fingerprint256, validTo: new Date(valid_to) })
      const objection = trust.check(socket as TLSSocket, `${endpoint.host}:${endpoint.port}`)
      if (!objection) return callback(null, socket as TLSSocket)
      socket?.destroy()
      callback(new ConnectFailure(objection.message, { cause: objection }), null)
    })
}

const readAll = async (body: AsyncIterable<Uint8Array>): Promise<Buffer> => {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > MAX_RESPONSE_BYTES) throw tooBig()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const inflate = async (raw: Buffer): Promise<Buffer> => {
  try {
    return await promisify(gunzip)(raw, { maxOutputLength: MAX_RESPONSE_BYTES })
  } catch (cause) {
    if ((cause as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE') throw tooBig()
    throw cause
  }
}

const tooBig = () =>
  new AppError('too_large', `The response of Proxmox VE has more than ${MAX_RESPONSE_BYTES} bytes.`, {
    hint: 'Request less at once: use a limit, a type or a single guest.',
  })
