import { z } from 'zod'
import { encodePage } from '../../client/encode-output.ts'
import type { Deputy } from '../../engine/deputy.ts'
import type { ControlDeps } from '../deps.ts'
import { download, streamOf } from '../download.ts'
import { createOutputFeeds } from '../output-feed.ts'
import { encodeParts, isWhole, PART_BYTES } from '../output-parts.ts'
import { jobId, waitSeconds } from '../params.ts'
import { json, jsonStream, noContent } from '../respond.ts'
import { resumePoint } from '../resume.ts'
import { queryRoute, type Route } from '../route.ts'
import { withSignal } from '../signal.ts'
import { sse } from '../sse.ts'
import { outputPageSchema } from '../views.ts'

const PAGE_BYTES = 256 * 1024

const cursor = z.int().exactOptional().describe('Byte to start from; negative: this many before the end')

export const outputRoutes = ({ deputy, closing }: ControlDeps): Route[] => {
  const feeds = createOutputFeeds(deputy)
  return [
    queryRoute({
      method: 'GET',
      path: '/api/jobs/{id}/output',
      tag: 'output',
      summary: 'Read output from a cursor on',
      query: z.strictObject({
        cursor,
        max_bytes: z
          .int()
          .min(1)
          .max(4 * 1024 * 1024)
          .exactOptional(),
        wait_seconds: waitSeconds,
        raw: z.boolean().exactOptional().describe('Return the bytes of both streams instead of JSON'),
      }),
      responses: { 200: { description: 'A page of output, or its bytes', schema: outputPageSchema } },
      handle: async call => {
        const id = jobId(call)
        const { cursor: from = 0, max_bytes, wait_seconds = 0, raw } = call.query
        if (raw) {
          await deputy.get(id)
          const max = max_bytes ?? Number.POSITIVE_INFINITY
          return download(call, { name: 'output.log', bytes: () => rawOutput(deputy, id, { from, max }) })
        }
        const maxBytes = max_bytes ?? PAGE_BYTES
        const first = await withSignal(call, closing, signal =>
          deputy.output(id, {
            cursor: from,
            maxBytes: Math.min(maxBytes, PART_BYTES),
            waitMs: wait_seconds * 1000,
            signal,
          }),
        )
        if (call.request.method === 'HEAD' || isWhole({ first, maxBytes })) return json(encodePage(first))
        const parts = encodeParts({
          first,
          maxBytes,
          read: (cursor, most) => deputy.output(id, { cursor, maxBytes: most, signal: never }),
        })
        return jsonStream(await streamOf(parts, call.request.signal))
      },
    }),

    queryRoute({
      method: 'GET',
      path: '/api/jobs/{id}/output/stream',
      tag: 'output',
      summary: "Follow output to its end: 'output' events (a page each), then 'end'",
      query: z.strictObject({ cursor }),
      headers: { 'Last-Event-ID': 'Resume after this event' },
      responses: {
        200: {
          description: 'Server-sent events; the id of an event is its next cursor',
          type: 'text/event-stream',
        },
        204: { description: 'The client has already received the end; do not reconnect' },
      },
      handle: async call => {
        const id = jobId(call)
        const resume = resumePoint(call, call.query.cursor)
        await deputy.get(id)
        if (resume.ended) return noContent()
        return sse({ call, closing, frames: signal => feeds.follow(id, resume.at ?? 0, signal) })
      },
    }),
  ]
}

/** A client that does not read holds one page in memory. */
const RAW_PAGE = 16 * 1024
const never = new AbortController().signal

/** The output stored so far, without waiting for more. */
async function* rawOutput(
  deputy: Deputy,
  id: string,
  { from, max }: { from: number; max: number },
): AsyncGenerator<Uint8Array> {
  let cursor = from
  let left = max
  while (left > 0) {
    const page = await deputy.output(id, { cursor, maxBytes: Math.min(left, RAW_PAGE), signal: never })
    for (const piece of page.pieces) {
      if (!('data' in piece)) continue
      yield piece.data.subarray(0, left)
      left -= Math.min(left, piece.data.length)
    }
    if (page.done || page.pieces.length === 0) return
    cursor = page.next_cursor
  }
}
