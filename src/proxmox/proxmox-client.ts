import { type CallOptions, createRequest, type Method, type Request } from './api-request.ts'
import { createAuthSession, readTicket, type Ticket } from './auth-session.ts'
import { createLiveCatalogue } from './catalogue/live-catalogue.ts'
import { type Catalogue, loadCatalogue } from './catalogue/load-catalogue.ts'
import { encodeBody, type Params, path } from './encode.ts'
import { createFailover } from './failover.ts'
import { withGrantHint } from './grant-hint.ts'
import { createTransport, type SeenCertificate } from './https-transport.ts'
import { createKeyedSemaphore } from './keyed-semaphore.ts'
import { type Logger, silentLogger } from './logger.ts'
import { type Clock, systemClock } from './proxmox-clock.ts'
import { errorFromResponse, wrongPassword } from './proxmox-errors.ts'
import type { ProxmoxSettings } from './proxmox-settings.ts'
import { readVersion, type Version } from './pve-version.ts'
import { type LockRetryOptions, retryWhileLocked } from './retry.ts'
import { type Upload, upload } from './storage-upload.ts'
import { parseUpid } from './upid.ts'
import { type TaskResult, type WaitOptions, waitTask } from './wait-task.ts'

export interface ProxmoxOptions {
  readonly logger?: Logger
  readonly clock?: Clock
  /**
   * Directory that caches the API catalogue of the host. With it, the client fetches the catalogue in the background of
   * its first calls; without it, on the first call of `catalogue()`. Once loaded, every call is checked against it.
   */
  readonly cacheDir?: string
  readonly callsPerNode?: number
}

type Verb = <T = unknown>(path: string, params?: Params, options?: CallOptions) => Promise<T>

export interface Proxmox {
  readonly settings: ProxmoxSettings
  readonly clock: Clock
  readonly get: Verb
  readonly post: Verb
  readonly put: Verb
  readonly delete: Verb
  readonly request: Request
  /** Uploads a file and waits for the task that stores it. */
  upload(file: Upload): Promise<TaskResult>
  waitTask(upid: string, options?: WaitOptions): Promise<TaskResult>
  cancelTask(upid: string, options?: CallOptions): Promise<void>
  /** Retries work that fails on a lock, until the deadline. */
  retryWhileLocked<T>(work: () => Promise<T>, patience: Omit<LockRetryOptions, 'clock'>): Promise<T>
  catalogue(options?: CallOptions): Promise<Catalogue>
  version(options?: CallOptions): Promise<Version>
  /** The certificate of the first host that was connected. */
  certificate(): SeenCertificate | undefined
  close(): Promise<void>
}

/** A node has three workers, and a call that waits for a lock blocks one of them for ten seconds. */
const CALLS_PER_NODE = 6

export const createProxmox = (settings: ProxmoxSettings, options: ProxmoxOptions = {}): Proxmox => {
  const { clock = systemClock, logger = silentLogger, callsPerNode = CALLS_PER_NODE } = options
  const transport = createTransport(settings.tls)
  const failover = createFailover(settings.endpoints, clock)

  const login = async (username: string, password: string): Promise<Ticket> => {
    const call = { method: 'POST', path: '/access/ticket' }
    const response = await transport.send(failover.order()[0]!, {
      method: 'POST',
      path: '/api2/json/access/ticket',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: encodeBody({ username, password }),
      timeoutMs: settings.timeoutMs,
    })
    if (response.status === 401) throw wrongPassword(username, response)
    if (response.status !== 200) throw errorFromResponse(call, response)
    return readTicket((JSON.parse(new TextDecoder().decode(response.body)) as { data: unknown }).data)
  }

  const send = createRequest({
    transport,
    failover,
    clock,
    logger,
    session: createAuthSession(settings.credentials, { clock, login }),
    limit: createKeyedSemaphore(callsPerNode),
    timeoutMs: settings.timeoutMs,
  })
  const version = (call: CallOptions = {}) => readVersion(send, call)

  const liveCatalogue = createLiveCatalogue({
    clock,
    logger,
    version: signal => version({ signal }),
    load: (current, signal) =>
      loadCatalogue({
        endpoints: () => failover.order(),
        transport,
        version: current,
        logger,
        signal,
        ...(options.cacheDir === undefined ? {} : { cacheDir: options.cacheDir }),
      }),
  })

  const request: Request = async <T>(
    method: Method,
    at: string,
    params: Params = {},
    call: CallOptions = {},
  ) => {
    await liveCatalogue.verify({ method, path: at }, params, call.signal)
    const data = await send<T>(method, at, params, call).catch(withHint)
    if (options.cacheDir !== undefined) liveCatalogue.refreshInBackground()
    return data
  }
  const withHint = async (error: unknown): Promise<never> => {
    throw await withGrantHint(send, settings.credentials, error)
  }
  const waiting = { request, clock }

  return {
    settings,
    clock,
    request,
    get: (at, params, call) => request('GET', at, params, call),
    post: (at, params, call) => request('POST', at, params, call),
    put: (at, params, call) => request('PUT', at, params, call),
    delete: (at, params, call) => request('DELETE', at, params, call),
    upload: async file =>
      waitTask(waiting, await upload(request, file), file.signal ? { signal: file.signal } : {}),
    waitTask: (upid, wait) => waitTask(waiting, upid, wait).catch(withHint),
    cancelTask: async (upid, call) => {
      await request('DELETE', path`/nodes/${parseUpid(upid).node}/tasks/${upid}`, {}, call)
    },
    retryWhileLocked: (work, patience) => retryWhileLocked(work, { ...patience, clock }),
    version,
    catalogue: (call = {}) => liveCatalogue.get(call.signal),
    certificate: () =>
      settings.endpoints.map(transport.certificate).find(certificate => certificate !== undefined),
    close: () => {
      liveCatalogue.close()
      return transport.close()
    },
  }
}
