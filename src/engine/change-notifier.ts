import type { JobChange } from './deputy.ts'

/** Who wants to know that a job changed. Carries no data: whoever wakes reads the store, so nobody can fall behind. */
export interface Signals {
  emit(change: JobChange): void
  onChange(listener: (change: JobChange) => void): () => void
  /** Armed before the store is read, awaited after: a change in between is not missed. Disarm when not awaited. */
  arm(jobId: string | undefined): Alarm
}

export interface Alarm {
  /** Resolves at the first change since it was armed, when the time is over, or when the signal aborts. */
  wait(timeoutMs: number, signal: AbortSignal): Promise<void>
  disarm(): void
}

export const createSignals = (): Signals => {
  const listeners = new Set<(change: JobChange) => void>()
  const sleepers = new Map<string, Set<() => void>>()
  const ANY = ''

  const wake = (key: string): void => {
    const waiting = sleepers.get(key)
    if (waiting === undefined) return
    sleepers.delete(key)
    for (const resolve of waiting) resolve()
  }

  const arm = (jobId: string | undefined): Alarm => {
    const key = jobId ?? ANY
    let rang = false
    let ring = (): void => {
      rang = true
    }
    const entry = (): void => ring()
    const waiting = sleepers.get(key) ?? new Set()
    sleepers.set(key, waiting.add(entry))
    const disarm = (): void => {
      const current = sleepers.get(key)
      current?.delete(entry)
      if (current?.size === 0) sleepers.delete(key)
    }
    return {
      disarm,
      wait: (timeoutMs, signal) =>
        new Promise<void>(resolve => {
          const timer = setTimeout(done, timeoutMs)
          function done(): void {
            clearTimeout(timer)
            signal.removeEventListener('abort', done)
            disarm()
            resolve()
          }
          if (rang || signal.aborted) return done()
          signal.addEventListener('abort', done, { once: true })
          ring = done
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
    arm,
  }
}
