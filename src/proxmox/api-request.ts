import { AppError } from '../jobs/errors.ts'
import type { AuthSession } from './auth-session.ts'
import { encodeBody, encodeParams, type Params } from './encode.ts'
import type { Endpoint } from './endpoints.ts'
import type { Failover } from './failover.ts'
import { ConnectFailure, type OutgoingRequest, type Transport } from './https-transport.ts'
import type { createKeyedSemaphore } from './keyed-semaphore.ts'
import type { Logger } from './logger.ts'
import type { Clock } from './proxmox-clock.ts'
import {
  type ApiResponse,
  type Call,
  errorFromResponse,
  UncertainError,
  unreachable,
} from './proxmox-errors.ts'
import { backoff } from './retry.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

export interface CallOptions {
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
  /** A complete body with its headers, instead of the encoded parameters; used by uploads. */
  readonly raw?: Pick<OutgoingRequest, 'headers' | 'body'>
  /** A read with side effects: it is retried only if the request cannot have arrived. */
  readonly once?: boolean
  /** The response is a file and is returned as a Uint8Array. */
  readonly bytes?: boolean
}

export type Request = <T = unknown>(
  method: Method,
  path: string,
  params?: Params,
  options?: CallOptions,
) => Promise<T>

export interface RequestDependencies {
  readonly transport: Transport
  readonly session: AuthSession
  readonly failover: Failover
  readonly limit: ReturnType<typeof createKeyedSemaphore>
  readonly clock: Clock
  readonly logger: Logger
  readonly timeoutMs: number
}

/** Attempts for a read. A write is repeated only on another host, if it cannot have been sent. */
const READ_ATTEMPTS = 3
/** After a 401 all calls fail at once for this long, because Proxmox VE delays each refusal by 3 s. */
const REFUSAL_MS = 10_000

export const createRequest = (dependencies: RequestDependencies): Request => {
  let refusal: { at: number; error: AppError } | undefined

  return async <T>(method: Method, path: string, params: Params = {}, options: CallOptions = {}) => {
    if (refusal && dependencies.clock.now() - refusal.at < REFUSAL_MS) throw refusal.error
    const call = { method, path }
    const response = await withRetries(dependencies, call, params, options)
    if (response.status >= 200 && response.status < 300) return readData<T>(call, response, options)
    const error = errorFromResponse(call, response)
    if (response.status !== 401) throw error
    if (!dependencies.session.refused()) {
      refusal = { at: dependencies.clock.now(), error }
      throw error
    }
    // The ticket may have expired or become invalid after a restart: log in again once.
    const second = await withRetries(dependencies, call, params, options)
    if (second.status >= 200 && second.status < 300) return readData<T>(call, second, options)
    throw errorFromResponse(call, second)
  }
}

const withRetries = async (
  dependencies: RequestDependencies,
  call: Call,
  params: Params,
  options: CallOptions,
): Promise<ApiResponse> => {
  const { clock, logger } = dependencies
  const attempts = call.method === 'GET' ? READ_ATTEMPTS : 1
  for (let attempt = 1; ; attempt++) {
    const last = attempt >= attempts
    try {
      const response = await overEndpoints(dependencies, call, params, options)
      if (last || options.once || !isTransient(response.status)) return response
    } catch (error) {
      if (last || !(error instanceof AppError && error.retryable && error.code === 'unavailable')) throw error
      if (options.once && !(error.cause instanceof ConnectFailure)) throw error
    }
    logger.debug({ ...call, attempt }, 'retrying a read from Proxmox VE')
    await clock.sleep(backoff(attempt - 1, { first: 200, most: 2000 }), options.signal)
  }
}

/** Tries the hosts of the cluster in turn until one is reached. */
const overEndpoints = async (
  dependencies: RequestDependencies,
  call: Call,
  params: Params,
  options: CallOptions,
): Promise<ApiResponse> => {
  const { failover, logger } = dependencies
  let failure: AppError | undefined
  for (const endpoint of failover.order()) {
    try {
      const response = await once(dependencies, endpoint, call, params, options)
      failover.worked(endpoint)
      return response
    } catch (error) {
      if (!(error instanceof ConnectFailure)) throw error
      failover.failed(endpoint)
      logger.warn({ host: endpoint.host, reason: error.message }, 'a Proxmox VE host does not answer')
      failure ??=
        error.cause instanceof AppError
          ? error.cause
          : unreachable(call, `${endpoint.host}: ${error.message}`, error)
    }
  }
  throw failure
}

const once = async (
  { transport, session, limit, timeoutMs }: RequestDependencies,
  endpoint: Endpoint,
  call: Call,
  params: Params,
  options: CallOptions,
): Promise<ApiResponse> => {
  const outgoing = compose(call, params, options.raw)
  let sent = false
  const send = async () => {
    const identity = await session.headers(call.method)
    options.signal?.throwIfAborted()
    sent = true
    return transport.send(endpoint, {
      ...outgoing,
      headers: { 'accept-encoding': 'gzip', ...outgoing.headers, ...identity },
      timeoutMs: options.timeoutMs ?? timeoutMs,
      ...(options.signal ? { signal: options.signal } : {}),
    })
  }
  try {
    return await limit(nodeOf(call.path), send, options.signal)
  } catch (error) {
    if (error instanceof ConnectFailure || error instanceof AppError) throw error
    if (!sent)
      throw options.signal?.aborted
        ? options.signal.reason
        : unreachable(call, (error as Error).message, error)
    if (call.method === 'GET') {
      options.signal?.throwIfAborted()
      throw unreachable(call, (error as Error).message, error)
    }
    throw new UncertainError(
      call,
      options.signal?.aborted ? 'the call was aborted' : (error as Error).message,
      { cause: error },
    )
  }
}

const compose = (
  call: Call,
  params: Params,
  raw: CallOptions['raw'],
): Pick<OutgoingRequest, 'method' | 'path' | 'headers' | 'body'> => {
  const at = `/api2/json${call.path}`
  if (raw) return { method: call.method, path: at, ...raw }
  if (call.method === 'POST' || call.method === 'PUT') {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    return { method: call.method, path: at, headers, body: encodeBody(params) }
  }
  // Proxmox VE answers GET or DELETE with a body with 501.
  const query = encodeParams(params)
  return { method: call.method, path: query ? `${at}?${query}` : at, headers: {} }
}

/** The key of the semaphore. Calls to other nodes must not wait for the calls to a slow node. */
const nodeOf = (path: string): string => /^\/nodes\/([^/]+)/.exec(path)?.[1] ?? 'cluster'

const isTransient = (status: number): boolean =>
  (status >= 502 && status <= 504) || (status >= 595 && status <= 599)

const readData = <T>(call: Call, response: ApiResponse, { bytes }: CallOptions): T => {
  if (bytes) return response.body as T
  try {
    return (JSON.parse(new TextDecoder().decode(response.body)) as { data: T }).data
  } catch (cause) {
    throw new AppError(
      'unavailable',
      `The response to ${call.method} ${call.path} is not from a Proxmox VE API.`,
      {
        hint: 'Check that PROXMOX_HOST is a Proxmox VE host without a login page in front of it.',
        retryable: false,
        cause,
      },
    )
  }
}
