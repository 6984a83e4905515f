import { AppError } from '../jobs/errors.ts'
import { createSemaphore } from '../jobs/semaphore.ts'
import { JSON_HEADERS } from './respond.ts'

const SLOTS = 8
const WAIT_MS = 5000
const SLICE_BYTES = 64 * 1024
/** A client that takes nothing for this long is disconnected, so that it does not keep its slot. */
const STALL_MS = 60_000

/** Bounds the memory of large answers: at most `SLOTS` of them exist at once, however many clients do not read. */
export interface LargeAnswers {
  /** Calls `make` when a slot is free. The slot is released when the client has taken the answer or is gone. */
  send(make: () => Promise<unknown>): Promise<Response>
}

export const createLargeAnswers = (stallMs = STALL_MS): LargeAnswers => {
  const acquire = createSemaphore(SLOTS)
  return {
    send: async make => {
      const release = await acquire(AbortSignal.timeout(WAIT_MS)).catch(refuse)
      try {
        const body = Buffer.from(JSON.stringify(await make()))
        return new Response(sliced(body, stallMs, release), { headers: JSON_HEADERS })
      } catch (error) {
        release()
        throw error
      }
    },
  }
}

const refuse = (): never => {
  const message = `${SLOTS} large answers are being sent to clients that read slowly.`
  throw new AppError('unavailable', message, { hint: 'Try again, or ask for less with max_bytes.' })
}

const sliced = (body: Buffer, stallMs: number, done: () => void): ReadableStream<Uint8Array> => {
  let at = 0
  let timer: NodeJS.Timeout | undefined
  const end = (): void => {
    clearTimeout(timer)
    done()
  }
  return new ReadableStream<Uint8Array>(
    {
      pull: controller => {
        clearTimeout(timer)
        if (at >= body.length) {
          controller.close()
          end()
          return
        }
        controller.enqueue(new Uint8Array(body.subarray(at, at + SLICE_BYTES)))
        at += SLICE_BYTES
        timer = setTimeout(() => {
          controller.error(new Error('the client does not read'))
          end()
        }, stallMs)
        timer.unref()
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  )
}
