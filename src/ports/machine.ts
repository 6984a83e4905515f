import type { Manifest } from '../jobs/manifest.ts'

export interface Machine {
  readonly id: string
  readonly runtime: string
  /** The job it was made for, or the last one that ran in it; null while it waits in a pool. */
  readonly jobId: string | null
  /** What the runtime needs to find it again (a VMID and node, a pid and its start time…). Never a secret. */
  readonly details: Readonly<Record<string, unknown>>
}

export interface FoundMachine {
  /** Our id, from the name or tag that proves ownership. */
  readonly id: string
  readonly details: Readonly<Record<string, unknown>>
  /** The machine itself is not there: this is what it left behind. */
  readonly leftover?: boolean
  /** When it came into being, where that can be told: the reaper leaves young ones alone. */
  readonly createdAt?: number
}

export interface ProvisionRequest {
  readonly machine: Machine
  /** Absent for a machine of a pool, which has a kind instead. */
  readonly manifest?: Manifest
  readonly kind?: string
  /** Persists details with the machine record; await it before creating what they name. */
  remember(details: Record<string, unknown>): Promise<void>
  /** Told what it waits for, if that may take long. */
  waiting?(what: string): void
  /** How long the parts of it took, told also when it fails. */
  timed?(phases: Readonly<Record<string, number>>): void
  readonly signal: AbortSignal
}

/**
 * `creating` and `ready` machines wait for work (a pool); `busy` ones run a job; `kept` ones outlive theirs until
 * the lease ends; `destroying` ones are on their way out and stay recorded until that is confirmed.
 */
export type MachineState = 'creating' | 'ready' | 'busy' | 'kept' | 'destroying'

export interface MachineRecord extends Machine {
  readonly state: MachineState
  readonly createdAt: number
  readonly leaseUntil: number | null
  /** Failed attempts to destroy it, when to try again, and what was said. */
  readonly attempts: number
  readonly notBefore: number
  readonly lastError: string | null
}
