import { createDeadline } from '../jobs/deadline.ts'
import type { Call } from './route.ts'

/** Runs work that must end when the client disconnects or the daemon stops. */
export const withSignal = async <T>(
  call: Call,
  closing: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const linked = createDeadline([call.request.signal, closing])
  try {
    return await work(linked.signal)
  } finally {
    linked.clear()
  }
}
