import type { Manifest } from '../jobs/manifest.ts'

export interface Machine {
  readonly id: string
  readonly runtime: string
  /** The job that the machine was made for, or the last one that ran in it; null while it is in a pool. */
  readonly jobId: string | null
  /**
   * What the provider needs to find the machine again (a pid and its start time…). Never a secret. `node` and `vmid`,
   * where a machine has them, are shown to users.
   */
  readonly details: Readonly<Record<string, unknown>>
}

export interface FoundMachine {
  /** Deputy's id, from the name or tag that proves ownership. */
  readonly id: string
  readonly details: Readonly<Record<string, unknown>>
  /** The machine itself is gone and only its files or records remain. */
  readonly leftover?: boolean
  /** Creation time, where known. The reaper skips machines that are too young. */
  readonly createdAt?: number
}

export interface CreateRequest {
  readonly machine: Machine
  /** Absent for a pool machine, which has a kind instead. */
  readonly manifest?: Manifest
  readonly kind?: string
  /** Stores details in the machine record. Await it before creating what they identify. */
  remember(details: Record<string, unknown>): Promise<void>
  /** Reports what provisioning waits for, if that may take long. */
  waiting?(what: string): void
  /** Reports the duration of each phase, also when provisioning fails. */
  timed?(phases: Readonly<Record<string, number>>): void
  readonly signal: AbortSignal
}

/**
 * `creating` and `ready` machines are in a pool. `busy` machines run a job. `kept` machines outlive their job until
 * the lease ends. `destroying` machines stay recorded until their destruction is confirmed.
 */
export const MACHINE_STATES = ['creating', 'ready', 'busy', 'kept', 'destroying'] as const
type MachineState = (typeof MACHINE_STATES)[number]

export interface MachineRecord extends Machine {
  readonly state: MachineState
  readonly createdAt: number
  readonly leaseUntil: number | null
  /** Failed attempts to destroy the machine, the time of the next attempt, and the last error. */
  readonly attempts: number
  readonly notBefore: number
  readonly lastError: string | null
  /** Id of the daemon that owns the machine; empty where there is only one. */
  readonly daemon: string
}
