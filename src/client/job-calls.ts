import type { IncomingMessage } from 'node:http'
import type {
  JobPage,
  JobResult,
  JobView,
  ListFilter,
  OutputOptions,
  OutputPage,
  WaitOptions,
} from '../engine/deputy.ts'
import type { Artifact, JobEvent } from '../jobs/job.ts'
import type { Connection } from './daemon-client.ts'
import { followStream } from './follow-stream.ts'
import { decodeEvent, type WireEvent } from './wire-event.ts'
import { decodePage, type WirePage } from './wire-output.ts'

/** A stored file that is being downloaded. */
export interface Download {
  readonly size: number
  readonly bytes: AsyncIterable<Uint8Array>
}

/** The calls about jobs, their output, events and files. */
export const createJobCalls = ({ transport, retry, revive }: Connection) => {
  const follower = { transport, ...(revive && { revive }) }

  const download = async (path: string, signal: AbortSignal | undefined): Promise<Download> =>
    downloadOf(await transport.open({ path, signal }))

  return {
    submit: (manifest: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<JobView> =>
      // Without an idempotency key, a retry would submit a second job.
      ('idempotency_key' in manifest ? retry<JobView> : transport.json<JobView>)({
        method: 'POST',
        path: '/api/jobs',
        json: manifest,
        signal,
      }),

    get: (id: string, signal?: AbortSignal): Promise<JobView> => retry({ path: job(id), signal }),

    /** Waits once: the daemon answers when the status changes or the time is over. */
    wait: (id: string, { since, timeoutMs, signal }: WaitOptions): Promise<JobView> =>
      retry({
        path: job(id),
        query: { wait_seconds: timeoutMs / 1000, since },
        answerMs: timeoutMs + 30_000,
        signal,
      }),

    list: (filter: ListFilter = {}, signal?: AbortSignal): Promise<JobPage> =>
      retry({ path: '/api/jobs', query: { ...filter }, signal }),

    result: (id: string, { maxBytes }: { maxBytes?: number } = {}): Promise<JobResult> =>
      retry({ path: `${job(id)}/result`, query: { max_bytes: maxBytes } }),

    output: async (
      id: string,
      { cursor, maxBytes, waitMs = 0, signal }: OutputOptions,
    ): Promise<OutputPage> => {
      const page = await retry<WirePage>({
        path: `${job(id)}/output`,
        query: { cursor, max_bytes: maxBytes, wait_seconds: waitMs / 1000 },
        answerMs: waitMs + 30_000,
        signal,
      })
      return decodePage(page)
    },

    /** The kept bytes of both streams in the order they were printed, without markers for dropped bytes. */
    rawOutput: (id: string, signal?: AbortSignal) => download(`${job(id)}/output?raw=1`, signal),

    async *follow(
      id: string,
      { cursor = 0, signal }: { cursor?: number; signal: AbortSignal },
    ): AsyncGenerator<OutputPage> {
      const path = `${job(id)}/output/stream`
      const isLast = (page: WirePage) => page.done
      for await (const page of followStream({ ...follower, path, after: String(cursor), isLast, signal }))
        yield decodePage(page)
    },

    events: async (id: string, query: { after?: number; limit?: number } = {}): Promise<JobEvent[]> => {
      const { events } = await retry<{ events: WireEvent[] }>({ path: `${job(id)}/events`, query })
      return events.map(decodeEvent)
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

    cancel: (id: string): Promise<JobView> => retry({ method: 'POST', path: `${job(id)}/cancel` }),

    delete: (id: string): Promise<void> => retry({ method: 'DELETE', path: job(id) }),

    artifacts: async (id: string): Promise<readonly Artifact[]> =>
      (await retry<{ artifacts: readonly Artifact[] }>({ path: `${job(id)}/artifacts` })).artifacts,

    openArtifact: (id: string, path: string, signal?: AbortSignal) =>
      download(`${job(id)}/artifacts/${path.split('/').map(encodeURIComponent).join('/')}`, signal),

    openPatch: (id: string, signal?: AbortSignal) => download(`${job(id)}/patch`, signal),

    putBlob: (
      body: AsyncIterable<Uint8Array>,
      signal?: AbortSignal,
    ): Promise<{ sha256: string; size: number }> =>
      transport.json({
        method: 'PUT',
        path: '/api/blobs',
        body,
        headers: { 'content-type': 'application/octet-stream' },
        answerMs: 3_600_000,
        signal,
      }),
  }
}

const job = (id: string): string => `/api/jobs/${encodeURIComponent(id)}`

const downloadOf = (response: IncomingMessage): Download => ({
  size: Number(response.headers['content-length'] ?? Number.NaN),
  bytes: response,
})
