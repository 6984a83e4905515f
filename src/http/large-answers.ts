import { AppError } from '../jobs/errors.ts'
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
  let free = SLOTS
  const waiting: (() => void)[] = []

  const release = (): void => {
    const next = waiting.shift()
    if (next) next()
    else free++
  }

  const acquire = async (): Promise<void> => {
    if (free > 0) {
      free--
      return
    }
    const granted = await new Promise<boolean>(resolve => {
      const grant = (): void => {
        clearTimeout(timer)
        resolve(true)
      }
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(grant), 1)
        resolve(false)
      }, WAIT_MS)
      waiting.push(grant)
    })
    if (!granted)
      throw new AppError(
        'unavailable',
        `${SLOTS} large answers are being sent to clients that read slowly.`,
        {
          hint: 'Try again, or ask for less with max_bytes.',
        },
      )
  }

  return {
    send: async make => {
      await acquire()
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
