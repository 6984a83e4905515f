import { setTimeout as sleep } from 'node:timers/promises'
import { abortable } from '../jobs/deadline.ts'

/** How many commands each node has. */
export interface Seats {
  /** Takes a place on a node; the answer gives it back. */
  occupy(id: string): () => void
  running(id: string): number
  /** Resolves when a place has become free somewhere, or after a while: what closes a node passes. */
  freed(signal: AbortSignal): Promise<void>
}

const FREED_MS = 1_000

export const createSeats = (): Seats => {
  const taken = new Map<string, number>()
  const waiting = new Set<() => void>()
  const running = (id: string): number => taken.get(id) ?? 0

  return {
    occupy: id => {
      taken.set(id, running(id) + 1)
      let released = false
      return () => {
        if (released) return
        released = true
        taken.set(id, running(id) - 1)
        for (const wake of [...waiting]) wake()
      }
    },
    running,
    freed: signal => {
      let wake = (): void => undefined
      const free = new Promise<void>(resolve => {
        wake = resolve
      })
      waiting.add(wake)
      const pause = sleep(FREED_MS, undefined, { ref: false })
      return abortable(Promise.race([free, pause]), signal).finally(() => waiting.delete(wake))
    },
  }
}
