export interface Deadline {
  readonly signal: AbortSignal
  /** True when the time ran out, false when a signal aborted. */
  readonly expired: boolean
  /** Removes the listeners from the signals. Always call it at the end. */
  clear(): void
}

/**
 * A signal that aborts with any of `signals`, or after `ms`. AbortSignal.any is not used: Node 20 may garbage-collect
 * its sources, and then neither their abort nor their timeout arrives, and it leaves a listener on a source that
 * lives as long as the daemon.
 */
export const createDeadline = (signals: readonly AbortSignal[], ms?: number): Deadline => {
  const controller = new AbortController()
  let expired = false
  const timer =
    ms === undefined
      ? undefined
      : setTimeout(() => {
          expired = true
          controller.abort(new DOMException(`no answer within ${ms} ms`, 'TimeoutError'))
        }, ms)
  const clear = (): void => {
    clearTimeout(timer)
    for (const signal of signals) signal.removeEventListener('abort', onAbort)
  }
  function onAbort(this: AbortSignal): void {
    clear()
    controller.abort(this.reason)
  }
  for (const signal of signals) signal.addEventListener('abort', onAbort, { once: true })
  const aborted = signals.find(signal => signal.aborted)
  if (aborted !== undefined) onAbort.call(aborted)
  return {
    signal: controller.signal,
    get expired() {
      return expired
    },
    clear,
  }
}

/** Waits for a promise until the signal aborts. The work itself continues, because other callers may share it. */
export const abortable = <T>(promise: Promise<T>, signal?: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal?.reason)
    promise.then(resolve, reject).finally(() => signal?.removeEventListener('abort', onAbort))
    if (signal?.aborted) return onAbort()
    signal?.addEventListener('abort', onAbort, { once: true })
  })
