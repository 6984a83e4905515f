export interface Deadline {
  readonly signal: AbortSignal
  /** The time ran out; nobody aborted. */
  readonly expired: boolean
  clear(): void
}

/**
 * A signal that follows others and a clock. Built by hand because in Node 20 the sources of `AbortSignal.any` may be
 * collected as garbage, and then neither their abort nor their time-out ever arrives.
 */
export const createDeadline = (signals: readonly AbortSignal[], ms?: number): Deadline => {
  const controller = new AbortController()
  let expired = false
  const timer =
    ms === undefined
      ? undefined
      : setTimeout(() => {
          expired = true
          controller.abort(new DOMException(`nothing came within ${ms} ms`, 'TimeoutError'))
        }, ms)
  const listeners = signals.map(signal => {
    const onAbort = (): void => controller.abort(signal.reason)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    return () => signal.removeEventListener('abort', onAbort)
  })
  return {
    signal: controller.signal,
    get expired() {
      return expired
    },
    clear: () => {
      clearTimeout(timer)
      for (const remove of listeners) remove()
    },
  }
}

/** Waits for a promise no longer than a signal allows. The work goes on: it may be for others, too. */
export const abortable = <T>(promise: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason)
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
  })
