import { type AppError, amendError } from '../jobs/errors.ts'
import { isLockKind } from './classify-error.ts'
import type { Clock } from './proxmox-clock.ts'
import { proxmoxDetails } from './proxmox-errors.ts'

export interface LockRetryOptions {
  readonly clock: Clock
  /** In milliseconds since the epoch. */
  readonly deadline: number
  readonly signal?: AbortSignal
}

/**
 * Retries work that failed on a lock, until the deadline. An attempt that Proxmox VE refuses because of a lock has
 * changed nothing, so `work` can be repeated as a whole.
 */
export const retryWhileLocked = async <T>(
  work: () => Promise<T>,
  { clock, deadline, signal }: LockRetryOptions,
): Promise<T> => {
  for (let attempt = 0; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (!isLockKind(proxmoxDetails(error)?.kind)) throw error
      const pause = backoff(attempt, { first: 250, most: 4000 })
      if (clock.now() + pause >= deadline) throw lockedTooLong(error as AppError)
      await clock.sleep(pause, signal)
    }
  }
}

/** Exponential backoff from `first` to `most`, with up to 25 % jitter so that callers do not retry in step. */
export const backoff = (attempt: number, { first, most }: { first: number; most: number }): number => {
  const full = Math.min(most, first * 2 ** attempt)
  return Math.round(full * (0.75 + Math.random() * 0.25))
}

const lockedTooLong = (error: AppError): AppError =>
  amendError(error, { message: `${error.message} (still locked at the deadline)` })
