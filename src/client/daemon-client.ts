import type { IncomingMessage } from 'node:http'
import type {
  JobPage,
  JobResult,
  JobView,
  ListFilter,
  MachineView,
  OutputOptions,
  OutputPage,
  WaitOptions,
} from '../engine/deputy.ts'
import { AppError } from '../jobs/errors.ts'
import type { Artifact, JobEvent } from '../jobs/job.ts'
import type { Readiness } from '../ports.ts'
import type { DaemonInfo } from './daemon-info.ts'
import { followStream } from './follow-stream.ts'
import { type Call, createTransport, isDisconnected } from './transport.ts'
import { decodeEvent, type WireEvent } from './wire-event.ts'
import { decodePage, type WirePage } from './wire-output.ts'

export interface ClientOptions {
  /** Who is calling, such as `cli`. */
  readonly origin?: string
  readonly version?: string
  /** For a daemon that is reached over TCP. */
  readonly token?: string
  /** Restarts the daemon when it dies during a stream, which then continues where it was. */
  readonly revive?: (signal: AbortSignal) => Promise<void>
}

/** A stored file that is being downloaded. */
export interface Download {
  readonly size: number
  readonly bytes: AsyncIterable<Uint8Array>
}

/** A routed command: its job, and why the router chose this computer or a node. */
export interface RoutedView {
  readonly job: JobView
  readonly auto_routed: boolean
  readonly routing: string
  readonly local_node: string
}

/** How long a call is retried while daemons die. */
const RETRY_MS = 30_000

/** A call to the Proxmox cluster that waits for the user's approval. */
export interface ApprovalView {
  readonly id: string
  readonly who: string
  readonly call: string
  readonly params: Readonly<Record<string, unknown>>
  readonly guests: readonly string[]
  readonly expires_at: string
  readonly approved: boolean
}

export type Client = ReturnType<typeof connect>

/** The operations of `Deputy`, over the control socket or HTTP. Connects at the first call. */
export const connect = (home: { readonly socket: string | URL }, options: ClientOptions = {}) => {
  const transport = createTransport(home.socket, {
    ...(options.token && { authorization: `Bearer ${options.token}` }),
    'x-deputy-origin': options.origin ?? 'cli',
    ...(options.version && { 'x-deputy-version': options.version }),
  })
  const { revive } = options
  const { open } = transport
  const follower = { transport, ...(revive && { revive }) }

  /** Retries when the daemon died during the call. Only for idempotent calls. */
  const json = async <T>(call: Call): Promise<T> => {
    const deadline = performance.now() + RETRY_MS
    for (let isFirst = true; ; isFirst = false) {
      try {
        return await transport.json<T>(call)
      } catch (error) {
        if (!revive || !(error instanceof AppError) || error.code !== 'unavailable') throw error
        // Retry once when a daemon answers `unavailable`, and until the deadline when the daemon died.
        if (performance.now() > deadline || !(isFirst || isDisconnected(error))) throw error
        await revive(call.signal ?? new AbortController().signal)
      }
    }
  }

  return {
    submit: (manifest: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<JobView> =>
      // Without an idempotency key, a retry would submit a second job.
      ('idempotency_key' in manifest ? json<JobView> : transport.json<JobView>)({
        method: 'POST',
        path: '/api/jobs',
        json: manifest,
        ...(signal && { signal }),
      }),

    get: (id: string, signal?: AbortSignal): Promise<JobView> =>
      json({ path: job(id), ...(signal && { signal }) }),

    /** Waits once: the daemon answers when the status changes or the time is over. */
    wait: (id: string, { since, timeoutMs, signal }: WaitOptions): Promise<JobView> =>
      json({
        path: job(id),
        query: { wait_seconds: timeoutMs / 1000, since },
        answerMs: timeoutMs + 30_000,
        signal,
      }),

    list: (filter: ListFilter = {}, signal?: AbortSignal): Promise<JobPage> =>
      json({ path: '/api/jobs', query: { ...filter }, ...(signal && { signal }) }),

    result: (id: string, options: { maxBytes?: number } = {}): Promise<JobResult> =>
      json({ path: `${job(id)}/result`, query: { max_bytes: options.maxBytes } }),

    output: async (id: string, options: OutputOptions): Promise<OutputPage> => {
      const { cursor, maxBytes, waitMs = 0, signal } = options
      const page = await json<WirePage>({
        path: `${job(id)}/output`,
        query: { cursor, max_bytes: maxBytes, wait_seconds: waitMs / 1000 },
        answerMs: waitMs + 30_000,
        signal,
      })
      return decodePage(page)
    },

    /** The kept bytes of both streams in the order they were printed, without markers for dropped bytes. */
    rawOutput: async (id: string, signal?: AbortSignal): Promise<Download> =>
      download(await open({ path: `${job(id)}/output`, query: { raw: 1 }, ...(signal && { signal }) })),

    async *follow(
      id: string,
      { cursor = 0, signal }: { cursor?: number; signal: AbortSignal },
    ): AsyncGenerator<OutputPage> {
      const path = `${job(id)}/output/stream`
      const isLast = (page: WirePage) => page.done
      for await (const page of followStream({ ...follower, path, after: String(cursor), isLast, signal }))
        yield decodePage(page)
    },

    events: async (id: string, options: { after?: number; limit?: number } = {}): Promise<JobEvent[]> => {
      const answer = await json<{ events: WireEvent[] }>({
        path: `${job(id)}/events`,
        query: { ...options },
      })
      return answer.events.map(decodeEvent)
    },

    async *followEvents(options: {
      id?: string
      after?: number
      signal: AbortSignal
    }): AsyncGenerator<JobEvent> {
      const { id, after, signal } = options
      const pages = followStream<WireEvent>({
        ...follower,
        path: id === undefined ? '/api/events/stream' : `${job(id)}/events/stream`,
        ...(after !== undefined && { after: String(after) }),
        signal,
      })
      for await (const event of pages) yield decodeEvent(event)
    },

    cancel: (id: string): Promise<JobView> => json({ method: 'POST', path: `${job(id)}/cancel` }),

    delete: (id: string): Promise<void> => json({ method: 'DELETE', path: job(id) }),

    artifacts: async (id: string): Promise<readonly Artifact[]> => {
      const { artifacts } = await json<{ artifacts: readonly Artifact[] }>({ path: `${job(id)}/artifacts` })
      return artifacts
    },

    openArtifact: async (id: string, path: string, signal?: AbortSignal): Promise<Download> =>
      download(
        await open({
          path: `${job(id)}/artifacts/${path.split('/').map(encodeURIComponent).join('/')}`,
          ...(signal && { signal }),
        }),
      ),

    openPatch: async (id: string, signal?: AbortSignal): Promise<Download> =>
      download(await open({ path: `${job(id)}/patch`, ...(signal && { signal }) })),

    putBlob: (
      source: AsyncIterable<Uint8Array>,
      signal?: AbortSignal,
    ): Promise<{ sha256: string; size: number }> =>
      transport.json({
        method: 'PUT',
        path: '/api/blobs',
        body: source,
        headers: { 'content-type': 'application/octet-stream' },
        answerMs: 3_600_000,
        ...(signal && { signal }),
      }),

    /** Makes the daemon reload its nodes. */
    reload: (): Promise<{ added: string[]; removed: string[]; changed: string[]; restart?: string[] }> =>
      transport.json({ method: 'POST', path: '/api/daemon/reload' }),

    /** Load and health of this computer and every node. */
    clusterStatus: (): Promise<Record<string, unknown>> => json({ path: '/api/cluster', answerMs: 120_000 }),

    /** Runs a command on the computer that fits best. */
    routeCommand: (command: object): Promise<RoutedView> =>
      transport.json({ method: 'POST', path: '/api/cluster/commands', json: command, answerMs: 120_000 }),

    approvals: async (): Promise<readonly ApprovalView[]> => {
      const { approvals } = await json<{ approvals: readonly ApprovalView[] }>({
        path: '/api/proxmox/approvals',
      })
      return approvals
    },

    approve: (id: string): Promise<ApprovalView> =>
      transport.json({ method: 'POST', path: `/api/proxmox/approvals/${encodeURIComponent(id)}` }),

    /** An address that logs a browser in to the console once. */
    consoleUrl: async ({ mayApprove }: { mayApprove: boolean }): Promise<string> => {
      const json = { may_approve: mayApprove }
      return (await transport.json<{ url: string }>({ method: 'POST', path: '/api/console/codes', json })).url
    },

    machines: async (): Promise<readonly MachineView[]> => {
      const { machines } = await json<{ machines: readonly MachineView[] }>({ path: '/api/machines' })
      return machines
    },

    destroyMachine: (id: string): Promise<void> =>
      json({ method: 'DELETE', path: `/api/machines/${encodeURIComponent(id)}`, answerMs: 300_000 }),

    doctor: async (signal?: AbortSignal): Promise<readonly Readiness[]> => {
      const { runtimes } = await json<{ runtimes: readonly Readiness[] }>({
        path: '/api/doctor',
        answerMs: 120_000,
        ...(signal && { signal }),
      })
      return runtimes
    },

    /** Boots throw-away machines. If the caller disconnects before the answer, the daemon stops and destroys them. */
    probe: async (signal?: AbortSignal): Promise<readonly Readiness[]> => {
      const { runtimes } = await transport.json<{ runtimes: readonly Readiness[] }>({
        method: 'POST',
        path: '/api/doctor/probe',
        answerMs: 3_600_000,
        ...(signal && { signal }),
      })
      return runtimes
    },

    config: async (): Promise<unknown> =>
      (await json<{ settings: unknown }>({ path: '/api/config' })).settings,

    daemon: (answerMs?: number): Promise<DaemonInfo> =>
      json({ path: '/api/daemon', ...(answerMs !== undefined && { answerMs }) }),

    stopDaemon: (options: { ifIdle?: boolean } = {}): Promise<void> =>
      transport.json({
        method: 'POST',
        path: '/api/daemon/stop',
        json: options.ifIdle ? { if_idle: true } : {},
      }),

    close: () => transport.close(),
  }
}

const job = (id: string): string => `/api/jobs/${encodeURIComponent(id)}`

const download = (response: IncomingMessage): Download => ({
  size: Number(response.headers['content-length'] ?? Number.NaN),
  bytes: response,
})
