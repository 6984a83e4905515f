import type { Manifest } from '../jobs/manifest.ts'
import type { FoundMachine, Machine, MachineRecord, ProvisionRequest } from './machine.ts'
import type { AttachRequest, Outcome, Run } from './run.ts'

/**
 * A place that lends machines. The engine records a machine before `provision` is called and forgets it only
 * after `destroy` has resolved; `list` tells what really exists, so that both can be compared after a crash.
 */
export interface Runtime {
  readonly name: string
  /** How many jobs it runs at once. */
  readonly limit: number
  /** For doctor: what works, what is missing, and the command that fixes it. */
  check(signal: AbortSignal): Promise<Readiness>
  /**
   * For doctor, where only a machine itself can tell: makes one as jobs get it and tells what came of it. The engine
   * has recorded it and destroys it in any case.
   */
  probe?(request: ProvisionRequest): Promise<readonly Check[]>
  /** Whether it could run this manifest at all; the reason is shown to the user. Cheap: it is asked at every dispatch. */
  fits(manifest: Manifest): Fit
  /** Makes the machine exist. Calls `remember` with what identifies it before the call that creates it. */
  provision(request: ProvisionRequest): Promise<void>
  /**
   * Takes a place for a machine where that needs no waiting, inside the transaction that claims the job. What it
   * tells is written with the claim, as if by `remember`; `provision` finds the place taken.
   */
  reserve?(request: ReserveRequest): Reservation | undefined
  /** Starts the command on a provisioned machine and stays with it to its end. */
  start(run: Run): Promise<Outcome>
  /**
   * Finds the command again after a restart of the daemon; must never start it. `unfinished`: the machine was being
   * made, no command was ever given to it, and `provision` goes on with it.
   */
  attach(run: AttachRequest): Promise<Outcome | { readonly kind: 'unfinished' }>
  /**
   * Idempotent. Resolves when the machine is confirmed gone, however it got there; rejects with `leftBehind` when
   * that can never be. `attempts` counts the failures so far.
   */
  destroy(machine: Machine & { readonly attempts?: number }, signal: AbortSignal): Promise<void>
  /** Everything of ours that exists, recorded or not. */
  list(signal: AbortSignal): Promise<FoundMachine[]>
  /** Whether a machine that is not in the list is really gone; absent where the list is the truth. */
  isGone?(machine: Machine, signal: AbortSignal): Promise<boolean>
  /** Where a machine is, as its owner calls it: a node, a VM; undefined while that is not decided. */
  where?(machine: Machine): string | undefined
  /** Told once at the start which of its machines an earlier daemon has recorded. */
  recall?(machines: readonly MachineRecord[]): void
  /** Lets go of everything without ending a job. */
  close(): Promise<void>
  /** How many machines of each kind to keep booted ahead of need; absent or 0: none. `provision` then runs without a job. */
  readonly poolSize?: number
  /** The kinds of machines that wait; one without a name unless told otherwise. */
  readonly poolKinds?: readonly string[]
  /** The kind that would serve a job; undefined when no machine that waits would do. */
  poolKind?(manifest: Manifest): string | undefined
  /** Age at which a machine that waits is replaced by a new one; absent: it waits for as long as it takes. */
  readonly poolAgeSeconds?: number
  /** There is nothing it could run on now: it is neither offered nor checked, but still cleans up. */
  readonly dormant?: boolean
  /** After whatever became of this computer, `attach` learns from elsewhere whether a command has started. */
  readonly remembersStart?: boolean
  /** What it runs goes on while nobody hears of it: only its timeout ends it, never silence. */
  readonly outlivesSilence?: boolean
}

export interface ReserveRequest {
  readonly machineId: string
  readonly jobId: string
  readonly manifest: Manifest
}

export interface Reservation {
  readonly details: Record<string, unknown>
  /** The claim came to nothing. */
  release(): void
}

export type Fit = { ok: true } | { ok: false; reason: string; hint?: string }

export interface Readiness {
  readonly runtime: string
  readonly ready: boolean
  readonly checks: readonly Check[]
}

export interface Check {
  readonly name: string
  readonly status: 'ok' | 'warning' | 'failed'
  readonly message: string
  /** The command or setting that fixes it. */
  readonly fix?: string
}
