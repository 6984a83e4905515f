/** Grants at most `limit` slots at a time. Others wait in order, and leave the queue when they are aborted. */
export const createSemaphore = (limit: number) => {
  const waiting: (() => void)[] = []
  let used = 0

  const wait = (signal?: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const leave = (): void => {
        waiting.splice(waiting.indexOf(enter), 1)
        reject(signal?.reason)
      }
      const enter = (): void => {
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      waiting.push(enter)
      signal?.addEventListener('abort', leave, { once: true })
    })

  const release = (): void => {
    const next = waiting.shift()
    if (next) next()
    else used--
  }

  /** Resolves with the function that releases the slot; only its first call has an effect. */
  return async (signal?: AbortSignal): Promise<() => void> => {
    signal?.throwIfAborted()
    if (used < limit) used++
    else await wait(signal)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      release()
    }
  }
}
