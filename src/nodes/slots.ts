import { setTimeout as sleep } from 'node:timers/promises'
import { abortable } from '../jobs/deadline.ts'

/** Counts the commands running on each node. */
export interface Slots {
  /** Takes a slot on the node. Call the returned function to release it; calling it twice is harmless. */
  acquire(nodeId: string): () => void
  inUse(nodeId: string): number
  /**
   * Resolves when any slot is released, or after a second: a node that was blocked by its circuit breaker may be
   * available again.
   */
  waitForRelease(signal: AbortSignal): Promise<void>
}

const RECHECK_MS = 1_000

export const createSlots = (): Slots => {
  const counts = new Map<string, number>()
  const waiting = new Set<() => void>()
  const inUse = (nodeId: string): number => counts.get(nodeId) ?? 0

  return {
    acquire: nodeId => {
      counts.set(nodeId, inUse(nodeId) + 1)
      let released = false
      return () => {
        if (released) return
        released = true
        counts.set(nodeId, inUse(nodeId) - 1)
        for (const wake of [...waiting]) wake()
      }
    },
    inUse,
    waitForRelease: signal => {
      let wake = (): void => undefined
      const released = new Promise<void>(resolve => {
        wake = resolve
      })
      waiting.add(wake)
      const pause = sleep(RECHECK_MS, undefined, { ref: false })
      return abortable(Promise.race([released, pause]), signal).finally(() => waiting.delete(wake))
    },
  }
}
