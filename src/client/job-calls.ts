import type {
  JobPage,
  JobResult,
  JobView,
  ListFilter,
  OutputOptions,
  OutputPage,
  WaitOptions,
} from '../engine/deputy.ts'
import type { JobEvent } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import type { SessionRequest } from '../ports/session.ts'
import { followStream } from './follow-stream.ts'
import type { Connection } from './transport.ts'
import { decodeEvent, type WireEvent } from './wire-event.ts'
import { decodePage, type WirePage } from './wire-output.ts'

/** The calls about jobs, their output and events. */
export const createJobCalls = (connection: Connection) => {
  const { transport, retry } = connection

  return {
    submit: (manifest: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<JobView> =>
      // Without an idempotency key, a retry would submit a second job.
      ('idempotency_key' in manifest ? retry<JobView> : transport.json<JobView>)({
        method: 'POST',
        path: '/api/jobs',
        json: manifest,
        signal,
      }),

    get: (id: string, signal?: AbortSignal): Promise<JobView> => retry({ path: jobPath(id), signal }),

    /** Waits once: the daemon answers when the status changes or the time is over. */
    wait: (id: string, { since, timeoutMs, signal }: WaitOptions): Promise<JobView> =>
      retry({
        path: jobPath(id),
        query: { wait_seconds: timeoutMs / 1000, since },
        answerMs: timeoutMs + 30_000,
        signal,
      }),

    manifest: (id: string, signal?: AbortSignal): Promise<Manifest> =>
      retry({ path: `${jobPath(id)}/manifest`, signal }),

    /** Starts a program in the machine of a running job. A WebSocket with the ticket carries its bytes. */
    sessionTicket: async (
      id: string,
      { argv, env, terminal }: SessionRequest,
      signal?: AbortSignal,
    ): Promise<string> => {
      const { ticket } = await transport.json<{ ticket: string }>({
        method: 'POST',
        path: `${jobPath(id)}/sessions`,
        json: { command: argv, env, ...(terminal && { terminal }) },
        answerMs: 120_000,
        signal,
      })
      return ticket
    },

    list: (filter: ListFilter = {}, signal?: AbortSignal): Promise<JobPage> =>
      retry({ path: '/api/jobs', query: { ...filter }, signal }),

    result: (
      id: string,
      { maxBytes, signal }: { maxBytes?: number; signal?: AbortSignal | undefined } = {},
    ): Promise<JobResult> => retry({ path: `${jobPath(id)}/result`, query: { max_bytes: maxBytes }, signal }),

    output: async (
      id: string,
      { cursor, maxBytes, waitMs = 0, signal }: OutputOptions,
    ): Promise<OutputPage> => {
      const page = await retry<WirePage>({
        path: `${jobPath(id)}/output`,
        query: { cursor, max_bytes: maxBytes, wait_seconds: waitMs / 1000 },
        answerMs: waitMs + 30_000,
        signal,
      })
      return decodePage(page)
    },

    async *follow(
      id: string,
      { cursor = 0, signal }: { cursor?: number; signal: AbortSignal },
    ): AsyncGenerator<OutputPage> {
      const path = `${jobPath(id)}/output/stream`
      const isLast = (page: WirePage) => page.done
      for await (const page of followStream({ connection, path, after: String(cursor), isLast, signal }))
        yield decodePage(page)
    },

    events: async (
      id: string,
      query: { after?: number; limit?: number } = {},
      signal?: AbortSignal,
    ): Promise<JobEvent[]> => {
      const { events } = await retry<{ events: WireEvent[] }>({
        path: `${jobPath(id)}/events`,
        query,
        signal,
      })
      return events.map(decodeEvent)
    },

    async *followEvents(options: {
      id?: string
      after?: number
      signal: AbortSignal
    }): AsyncGenerator<JobEvent> {
      const { id, after, signal } = options
      const pages = followStream<WireEvent>({
        connection,
        path: id === undefined ? '/api/events/stream' : `${jobPath(id)}/events/stream`,
        ...(after !== undefined && { after: String(after) }),
        signal,
      })
      for await (const event of pages) yield decodeEvent(event)
    },

    cancel: (id: string): Promise<JobView> => retry({ method: 'POST', path: `${jobPath(id)}/cancel` }),

    delete: (id: string): Promise<void> => retry({ method: 'DELETE', path: jobPath(id) }),
  }
}

/** The path of a job in the API. */
export const jobPath = (id: string): string => `/api/jobs/${encodeURIComponent(id)}`
