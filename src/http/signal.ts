import type { Call } from './route.ts'

/**
 * Runs work that must end when the client leaves or the daemon closes. Not AbortSignal.any: `closing` lives
 * as long as the daemon, and every request would leave something behind on it.
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
  /** Lets go of the sources; call it at the end, however it came. */
  release(): void
}

export const linkSignals = (...sources: readonly AbortSignal[]): LinkedSignal => {
  const controller = new AbortController()
  const release = (): void => {
    for (const source of sources) source.removeEventListener('abort', onAbort)
  }
  const abort = (reason?: unknown): void => {
    controller.abort(reason)
    // A client that left before its answer began is never told to anybody but by its signal.
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
