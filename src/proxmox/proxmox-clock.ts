import { setTimeout as sleep } from 'node:timers/promises'

export interface Clock {
  now(): number
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: async (ms, signal) => {
    signal?.throwIfAborted()
    try {
      await sleep(ms, undefined, signal ? { signal } : {})
    } catch (error) {
      // The timer throws its own AbortError; callers expect the reason of the signal.
      throw signal?.aborted ? signal.reason : error
    }
  },
}
