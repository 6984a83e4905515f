import type { JobChange } from './deputy.ts'

/**
 * Notifies listeners that a job changed. Notifications carry no data: listeners read the store, so a slow one cannot
 * fall behind.
 */
export interface ChangeNotifier {
  emit(change: JobChange): void
  onChange(listener: (change: JobChange) => void): () => void
  /**
   * Call this before reading the store and wait after it, so that a change in between is not missed. Close the listener
   * if it is not awaited.
   */
  listen(jobId: string | undefined): ChangeListener
}

interface ChangeListener {
  /** Resolves at the first change since `listen`, on timeout, or when the signal aborts. */
  wait(timeoutMs: number, signal: AbortSignal): Promise<void>
  close(): void
}

export const createChangeNotifier = (): ChangeNotifier => {
  const listeners = new Set<(change: JobChange) => void>()
  const waiters = new Map<string, Set<() => void>>()
  const ANY = ''

  const wake = (key: string): void => {
    const resolvers = waiters.get(key)
    if (resolvers === undefined) return
    waiters.delete(key)
    for (const resolve of resolvers) resolve()
  }

  const listen = (jobId: string | undefined): ChangeListener => {
    const key = jobId ?? ANY
    let hasChanged = false
    let notify = (): void => {
      hasChanged = true
    }
    const entry = (): void => notify()
    const resolvers = waiters.get(key) ?? new Set()
    waiters.set(key, resolvers.add(entry))
    const close = (): void => {
      const current = waiters.get(key)
      current?.delete(entry)
      if (current?.size === 0) waiters.delete(key)
    }
    return {
      close,
      wait: (timeoutMs, signal) =>
        new Promise<void>(resolve => {
          const timer = setTimeout(done, timeoutMs)
          function done(): void {
            clearTimeout(timer)
            signal.removeEventListener('abort', done)
            close()
            resolve()
          }
          if (hasChanged || signal.aborted) return done()
          signal.addEventListener('abort', done, { once: true })
          notify = done
        }),
    }
  }

  return {
    emit: change => {
      for (const listener of listeners) listener(change)
      wake(change.jobId)
      wake(ANY)
    },
    onChange: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    listen,
  }
}
