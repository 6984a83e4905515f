import type { Proxmox } from '../../proxmox/proxmox-client.ts'
import { proxmoxDetails, UncertainError } from '../../proxmox/proxmox-errors.ts'

export interface OutageRetryOptions {
  readonly signal: AbortSignal
  /** How often to retry after a lost response; 0 for calls that must not run twice. */
  readonly lostAnswers?: number
  /** Called with the reason of each wait. */
  readonly waiting?: ((what: string) => void) | undefined
  /** How long to wait for locks; milliseconds since the epoch. */
  readonly deadline?: number
}

const LOCK_MS = 120_000
/** Wait longer for a cluster that restarts than for a node that is down: another node can take over from a node. */
const OUTAGE_LIMIT_MS: Readonly<Record<string, number>> = {
  unreachable: 300_000,
  no_quorum: 300_000,
  node_down: 30_000,
}
const MAX_LOST_ANSWERS = 3
const PAUSE_MS = 2000

/**
 * Runs one provisioning step through cluster outages: waits for locks, retries while the API is unreachable, and
 * retries after a lost response. `work` must succeed when an earlier attempt has already completed it.
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
      // On timeout, report the error that was being retried.
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

/** True if the API was unreachable: the call had no effect, and the state of the machine is unknown. */
export const isOutage = (error: unknown): boolean => outageLimitMs(error) > 0

const outageLimitMs = (error: unknown): number => OUTAGE_LIMIT_MS[proxmoxDetails(error)?.kind ?? ''] ?? 0
