import type { Call } from './route.ts'

/**
 * Runs work that must end when the client disconnects or the daemon stops. AbortSignal.any is not used: `closing`
 * lives as long as the daemon, and every request would leave a listener on it.
 */
export const withSignal = async <T>(
  call: Call,
  closing: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const linked = linkSignals(call.request.signal, closing)
  try {
    return await work(linked.signal)
  } finally {
    linked.release()
  }
}

export interface LinkedSignal {
  readonly signal: AbortSignal
  abort(reason?: unknown): void
  /** Removes the listeners from the sources. Always call it at the end. */
  release(): void
}

export const linkSignals = (...sources: readonly AbortSignal[]): LinkedSignal => {
  const controller = new AbortController()
  const release = (): void => {
    for (const source of sources) source.removeEventListener('abort', onAbort)
  }
  const abort = (reason?: unknown): void => {
    controller.abort(reason)
    // When a client disconnects before its response starts, only the signal reports it.
    release()
  }
  function onAbort(this: AbortSignal): void {
    abort(this.reason)
  }
  for (const source of sources) source.addEventListener('abort', onAbort, { once: true })
  const gone = sources.find(source => source.aborted)
  if (gone !== undefined) abort(gone.reason)
  return { signal: controller.signal, abort, release }
}
