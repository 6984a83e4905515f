import { z } from 'zod'
import { encodeEvent } from '../../client/wire-event.ts'
import type { Deputy } from '../../engine/deputy.ts'
import type { ControlDeps } from '../deps.ts'
import { jobId } from '../params.ts'
import { json, noContent } from '../respond.ts'
import { endId, resumePoint } from '../resume.ts'
import { queryRoute, type Route } from '../route.ts'
import { message, sse } from '../sse.ts'
import { eventListSchema } from '../views.ts'

const after = z.int().min(0).exactOptional().describe("'seq' of the last known event")
const streamed = {
  headers: { 'Last-Event-ID': 'Resume after this event' },
  responses: {
    200: { description: "Server-sent events; the id of an event is its 'seq'", type: 'text/event-stream' },
    204: { description: 'The client has already received the end; do not reconnect' },
  },
} as const

export const eventRoutes = ({ deputy, closing }: ControlDeps): Route[] => [
  queryRoute({
    method: 'GET',
    path: '/api/jobs/{id}/events',
    tag: 'events',
    summary: 'List the events of a job',
    query: z.strictObject({ after, limit: z.int().min(1).max(1000).exactOptional() }),
    responses: { 200: { description: 'Events in order', schema: eventListSchema } },
    handle: async call => {
      const { after: from, limit } = call.query
      const events = await deputy.events(jobId(call), {
        ...(from !== undefined && { after: from }),
        ...(limit !== undefined && { limit }),
      })
      return json({ events: events.map(encodeEvent), next_after: events.at(-1)?.seq ?? from ?? 0 })
    },
  }),

  queryRoute({
    method: 'GET',
    path: '/api/jobs/{id}/events/stream',
    tag: 'events',
    summary: "Follow the events of a job; the last one is 'end'",
    query: z.strictObject({ after }),
    ...streamed,
    handle: async call => {
      const id = jobId(call)
      const resume = resumePoint(call, call.query.after)
      await deputy.get(id)
      if (resume.ended) return noContent()
      return sse({ call, closing, frames: signal => jobFrames(deputy, id, resume.at ?? 0, signal) })
    },
  }),

  queryRoute({
    method: 'GET',
    path: '/api/events/stream',
    tag: 'events',
    summary: 'Follow the events of all jobs, from now or after a known event',
    query: z.strictObject({ after }),
    headers: streamed.headers,
    responses: { 200: streamed.responses[200] },
    handle: call => {
      const { at } = resumePoint(call, call.query.after)
      return sse({ call, closing, frames: signal => allFrames(deputy, at, signal) })
    },
  }),
]

async function* jobFrames(
  deputy: Deputy,
  id: string,
  start: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  let seq = start
  for await (const event of deputy.followEvents({ id, after: start, signal })) {
    seq = event.seq
    yield message(seq, event.type, encodeEvent(event))
  }
  if (signal.aborted) return
  const { job_id, status, exit_code } = await deputy.get(id)
  yield message(endId(seq), 'end', { job_id, status, exit_code })
}

async function* allFrames(
  deputy: Deputy,
  after: number | undefined,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const event of deputy.followEvents({ ...(after !== undefined && { after }), signal }))
    yield message(event.seq, event.type, encodeEvent(event))
}
