import { createDeadline } from '../jobs/deadline.ts'
import { toAppError } from '../jobs/errors.ts'
import type { Call } from './route.ts'

export interface SseOptions {
  readonly call: Call
  readonly closing: AbortSignal
  /** Encoded messages. The next one is requested only after the last one was sent. */
  frames(signal: AbortSignal): AsyncIterator<Uint8Array, unknown, undefined>
  readonly heartbeatMs?: number
}

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  // Disables buffering in proxies, which would delay events.
  'x-accel-buffering': 'no',
} as const

const HEARTBEAT_MS = 15_000
const encoder = new TextEncoder()
const PREAMBLE = encoder.encode('retry: 1000\n\n')
const HEARTBEAT = encoder.encode(': keep-alive\n\n')

/**
 * Answers with server-sent events. The stream is pulled by the client: a client that does not read costs one frame of
 * memory, however far it falls behind, and continues from its own cursor later.
 */
export const sse = ({ call, closing, frames, heartbeatMs = HEARTBEAT_MS }: SseOptions): Response => {
  if (call.request.method === 'HEAD') return new Response(null, { headers: HEADERS })
  const left = new AbortController()
  const link = createDeadline([call.request.signal, closing, left.signal])
  const iterator = frames(link.signal)
  let requested = false
  let ready: (() => Uint8Array | undefined) | undefined
  let wake: (() => void) | undefined

  const deliver = (take: () => Uint8Array | undefined): void => {
    requested = false
    ready = take
    wake?.()
  }
  const requestNext = (): void => {
    requested = true
    iterator.next().then(
      result => deliver(() => (result.done === true ? undefined : result.value)),
      error => deliver(() => failureFrame(error, link.signal)),
    )
  }

  /** Clears its timer, so that a long-lived stream leaks nothing. */
  const waitForFrame = (ms: number): Promise<void> =>
    new Promise(resolve => {
      const timer = setTimeout(resolve, ms)
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })

  const body = new ReadableStream<Uint8Array>(
    {
      start: controller => controller.enqueue(PREAMBLE),
      async pull(controller) {
        if (!requested && ready === undefined) requestNext()
        if (ready === undefined) await waitForFrame(heartbeatMs)
        const take = ready
        if (take === undefined) return controller.enqueue(HEARTBEAT)
        ready = undefined
        const frame = take()
        if (frame !== undefined) return controller.enqueue(frame)
        link.clear()
        controller.close()
      },
      async cancel() {
        left.abort()
        await iterator.return?.()
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(body, { headers: HEADERS })
}

export const message = (id: string | number, event: string, data: unknown): Uint8Array =>
  encoder.encode(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`)

/** A stopping daemon ends its streams without an error, because the client reconnects and resumes. */
const failureFrame = (error: unknown, signal: AbortSignal): Uint8Array | undefined =>
  signal.aborted
    ? undefined
    : encoder.encode(`event: error\ndata: ${JSON.stringify({ error: toAppError(error).toBody() })}\n\n`)
