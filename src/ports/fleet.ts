import type { Job } from '../jobs/job.ts'
import type { MachineRecord } from './machine.ts'

/** A change of a job that another daemon may wait for. */
export interface FleetChange {
  readonly jobId: string
  readonly kind: 'state' | 'output'
}

/**
 * `up` renews its lease. `stopped` has ended in order. `gone` has let its lease expire and was fenced: its writes are
 * refused until it registers again.
 */
export const DAEMON_STATES = ['up', 'stopped', 'gone'] as const

export interface DaemonRecord {
  readonly id: string
  readonly name: string
  readonly host: string
  readonly version: string
  readonly state: (typeof DAEMON_STATES)[number]
  /** It claims no more jobs. */
  readonly isDraining: boolean
  /** Times of the clock of the database. */
  readonly startedAt: number
  readonly leaseUntil: number
  readonly runtimes: readonly RuntimeSlots[]
  /** Identifies its key of the fleet. Daemons with the same one take over from each other. */
  readonly keyId: string | null
  /** Jobs that the daemon has claimed and that are not finished. */
  readonly jobs: number
}

export interface RuntimeSlots {
  readonly name: string
  readonly slots: number
}

export interface Adopted {
  readonly machine: MachineRecord
  /** The unfinished job that runs in it. */
  readonly job: Job | undefined
  /** Name of the daemon that it belonged to. */
  readonly from: string
}

/** The daemons that share a database. */
export interface Fleet {
  daemons(): Promise<DaemonRecord[]>
  /** Stops or resumes the claims of a daemon; false when there is none with that name. */
  drain(name: string, draining: boolean): Promise<boolean>
  /**
   * Machines of these runtimes whose daemon is away for longer than its lease and has the same key as this one. Some of
   * them, if there are many; none while this daemon is drained.
   */
  abandonedMachines(runtimes: readonly string[]): Promise<MachineRecord[]>
  /**
   * Makes this daemon the owner of such a machine and of the job that runs in it. Undefined when its daemon is back, or
   * another one was first.
   */
  adopt(machineId: string): Promise<Adopted | undefined>
  /** Fails the jobs of daemons that have been away for longer than this time, and returns their ids. */
  failAbandoned(waitSeconds: number, at: number): Promise<string[]>
  /** Stores which runtimes this daemon has. */
  announce(runtimes: readonly RuntimeSlots[]): Promise<void>
  /** Tells the other daemons about a change. It may get lost, so they also poll. */
  publish(change: FleetChange): void
  /** Receives the changes of the other daemons. */
  onChange(listener: (change: FleetChange) => void): void
  /** Jobs of this daemon that a user wants to cancel. */
  cancelRequests(): Promise<string[]>
}
