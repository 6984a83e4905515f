import { createSemaphore } from '../jobs/semaphore.ts'

/** Runs at most `limit` tasks at a time per key. Others wait in order, and leave the queue when they are aborted. */
export const createKeyedSemaphore = (limit: number) => {
  const semaphores = new Map<string, ReturnType<typeof createSemaphore>>()

  return async <T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> => {
    const acquire = semaphores.get(key) ?? createSemaphore(limit)
    semaphores.set(key, acquire)
    const release = await acquire(signal)
    try {
      return await work()
    } finally {
      release()
    }
  }
}
