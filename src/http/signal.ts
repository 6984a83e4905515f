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
  abort(): void
  /** Lets go of the sources; call it at the end, however it came. */
  release(): void
}

export const linkSignals = (...sources: readonly AbortSignal[]): LinkedSignal => {
  const controller = new AbortController()
  const onAbort = (event: Event) => {
    const source = event.target
    controller.abort(source instanceof AbortSignal ? source.reason : undefined)
  }
  for (const source of sources) {
    if (source.aborted) controller.abort(source.reason)
    else source.addEventListener('abort', onAbort, { once: true })
  }
  return {
    signal: controller.signal,
    abort: () => controller.abort(),
    release: () => {
      for (const source of sources) source.removeEventListener('abort', onAbort)
    },
  }
}
