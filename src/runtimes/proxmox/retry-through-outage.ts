import type { Proxmox } from '../../proxmox/proxmox-client.ts'
import { proxmoxDetails, UncertainError } from '../../proxmox/proxmox-errors.ts'

export interface OutageRetryOptions {
  readonly signal: AbortSignal
  /** How often a lost answer may be followed by a second try; 0 for what must not be done twice. */
  readonly lostAnswers?: number
  /** Told what stands in the way. */
  readonly waiting?: ((what: string) => void) | undefined
  /** For locks; in milliseconds since the epoch. */
  readonly deadline?: number
}

const LOCK_MS = 120_000
/** A cluster that restarts comes back; a node that is down is better left to another machine. */
const OUTAGE_LIMIT_MS: Readonly<Record<string, number>> = {
  unreachable: 300_000,
  no_quorum: 300_000,
  node_down: 30_000,
}
const MAX_LOST_ANSWERS = 3
const PAUSE_MS = 2000

/**
 * Does a step of a machine's making whatever the cluster is up to: waits for locks, sits out times in which nobody
 * answers, and after a lost answer does it again. Work that can find itself done must say so.
 */
export const retryThroughOutage = async <T>(
  proxmox: Proxmox,
  work: () => Promise<T>,
  {
    signal,
    waiting,
    lostAnswers = MAX_LOST_ANSWERS,
    deadline = proxmox.clock.now() + LOCK_MS,
  }: OutageRetryOptions,
): Promise<T> => {
  const { clock } = proxmox
  const began = clock.now()
  let trouble: unknown
  for (let lost = 0; ; ) {
    try {
      return await proxmox.retryWhileLocked(work, { deadline, signal })
    } catch (error) {
      // Whose time is over is told what it was waiting for.
      if (signal.aborted) throw trouble ?? error
      trouble = error
      if (error instanceof UncertainError) {
        if (++lost > lostAnswers) throw error
      } else if (clock.now() - began >= outageLimitMs(error)) throw error
      waiting?.((error as Error).message)
    }
    await clock.sleep(PAUSE_MS, signal).catch(() => {})
  }
}

/** Nobody answered, so nothing was done; it says nothing of the machine. */
export const isOutage = (error: unknown): boolean => outageLimitMs(error) > 0

const outageLimitMs = (error: unknown): number => OUTAGE_LIMIT_MS[proxmoxDetails(error)?.kind ?? ''] ?? 0
