import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../../src/jobs/errors.ts'

/** Repeats a call while the daemon is away; any other refusal is the answer. */
export const patiently = async <T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> => {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (signal.aborted || !isPassing(error)) throw error
      await sleep(200, undefined, { signal })
    }
  }
}

/** The daemon is away, the disk is full, or the connection was cut in the middle of an answer. */
const isPassing = (error: unknown): boolean =>
  error instanceof AppError ? error.code === 'unavailable' : error instanceof Error && 'code' in error

/** Waits for a list of complaints to become empty; returns what is left of it. */
export const untilNone = async (
  find: () => Promise<readonly string[]> | readonly string[],
  deadlineMs: number,
): Promise<readonly string[]> => {
  const deadline = performance.now() + deadlineMs
  for (;;) {
    const left = await find()
    if (left.length === 0 || performance.now() > deadline) return left
    await sleep(250)
  }
}
