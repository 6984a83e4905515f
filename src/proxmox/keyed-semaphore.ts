/** Runs at most `limit` tasks at a time per key. Others wait in order, and leave the queue when they are aborted. */
export const createKeyedSemaphore = (limit: number) => {
  const lanes = new Map<string, Lane>()

  const acquire = (key: string, signal?: AbortSignal): Promise<void> => {
    const lane = lanes.get(key) ?? { running: 0, waiting: [] }
    lanes.set(key, lane)
    if (lane.running < limit) {
      lane.running++
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const leave = () => {
        lane.waiting.splice(lane.waiting.indexOf(enter), 1)
        reject(signal?.reason)
      }
      const enter = () => {
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      lane.waiting.push(enter)
      signal?.addEventListener('abort', leave, { once: true })
    })
  }

  const release = (key: string): void => {
    const lane = lanes.get(key)!
    const next = lane.waiting.shift()
    if (next) next()
    else if (--lane.running === 0) lanes.delete(key)
  }

  return async <T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> => {
    signal?.throwIfAborted()
    await acquire(key, signal)
    try {
      return await work()
    } finally {
      release(key)
    }
  }
}

interface Lane {
  running: number
  waiting: (() => void)[]
}
