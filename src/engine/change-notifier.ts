import type { JobChange } from './deputy.ts'

/**
 * Notifies listeners that a job changed. Notifications carry no data: listeners read the store, so a slow one cannot
 * fall behind.
 */
export interface ChangeNotifier {
  emit(change: JobChange): void
  onChange(listener: (change: JobChange) => void): () => void
  /** Call this before reading the store and wait after it, so that a change in between is not missed. */
  listen(jobId: string | undefined): ChangeListener
}

interface ChangeListener {
  /** Resolves at the first change since the last wait (or since `listen`), on timeout, or when the signal aborts. */
  wait(timeoutMs: number, signal: AbortSignal): Promise<void>
  close(): void
}

export const createChangeNotifier = (): ChangeNotifier => {
  const listeners = new Set<(change: JobChange) => void>()
  const waiters = new Map<string, Set<() => void>>()
  const ANY = ''

  const wake = (key: string): void => {
    for (const notify of waiters.get(key) ?? []) notify()
  }

  const listen = (jobId: string | undefined): ChangeListener => {
    const key = jobId ?? ANY
    let hasChanged = false
    let wakeUp: (() => void) | undefined
    const notify = (): void => {
      hasChanged = true
      wakeUp?.()
    }
    waiters.set(key, (waiters.get(key) ?? new Set()).add(notify))
    return {
      close: () => {
        const current = waiters.get(key)
        current?.delete(notify)
        if (current?.size === 0) waiters.delete(key)
      },
      wait: (timeoutMs, signal) =>
        new Promise<void>(resolve => {
          const timer = setTimeout(done, timeoutMs)
          function done(): void {
            clearTimeout(timer)
            signal.removeEventListener('abort', done)
            hasChanged = false
            wakeUp = undefined
            resolve()
          }
          if (hasChanged || signal.aborted) return done()
          signal.addEventListener('abort', done, { once: true })
          wakeUp = done
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
