import type { Manifest } from '../jobs/manifest.ts'
import type { CreateRequest, FoundMachine, Machine, MachineRecord } from './machine.ts'
import type { AttachRequest, Outcome, Run } from './run.ts'
import type { Session, SessionRequest } from './session.ts'

/**
 * A source of machines. The engine records a machine before it calls `create`, and deletes the record only after
 * `destroy` has resolved. `list` returns what really exists, so that the engine can compare both after a crash.
 */
export interface Provider {
  readonly name: string
  /** Each machine has a kernel of its own, as VMs have: for jobs with `isolation: vm`. */
  readonly ownKernel?: boolean
  /** How many jobs run at once. Without slots a provider is neither offered nor checked, but it still cleans up. */
  readonly slots: number
  /** For doctor: what works, what is missing, and the command that fixes it. */
  check(signal: AbortSignal): Promise<Readiness>
  /**
   * For doctor, where only a real machine can prove the setup: creates one as for a job and reports the outcome.
   * The engine has recorded the machine and destroys it in any case.
   */
  probe?(request: CreateRequest): Promise<readonly Check[]>
  /**
   * Whether the provider could ever run this manifest. The user sees the reason. Must be cheap: called at every
   * dispatch.
   */
  fits(manifest: Manifest): Fit
  /** Creates the machine. Calls `remember` with what identifies it before the call that creates it. */
  create(request: CreateRequest): Promise<void>
  /** Starts the command on a provisioned machine and follows it to its end. */
  start(run: Run): Promise<Outcome>
  /**
   * Finds the command again after a restart of the daemon; must never start it. `unfinished`: provisioning had not
   * ended and no command was sent to the machine; `create` continues with it.
   */
  attach(run: AttachRequest): Promise<Outcome | { readonly kind: 'unfinished' }>
  /**
   * Idempotent. Resolves when the machine is confirmed gone, whatever removed it. Rejects with `leftoverError` when it
   * can never be destroyed. `attempts` counts the failures so far.
   */
  destroy(machine: Machine & { readonly attempts?: number }, signal: AbortSignal): Promise<void>
  /**
   * Lists all machines that belong to Deputy, recorded or not. Includes those of `known` that may exist although they
   * cannot be seen at present: what is missing in the list is gone.
   */
  list(signal: AbortSignal, known?: readonly Machine[]): Promise<FoundMachine[]>
  /**
   * The ids of those machines of other daemons that are certainly the same machines when they are reached from here.
   * When their daemon is gone, this one may adopt them. Absent: none is.
   */
  reachable?(machines: readonly Machine[], signal: AbortSignal): Promise<ReadonlySet<string>>
  /** Runs a program in the machine of a running job, beside the job. Absent: the provider has no sessions. */
  open?(machine: Machine, request: SessionRequest, signal: AbortSignal): Promise<Session>
  /** Receives, once at the start, the machines that an earlier daemon has recorded. */
  recall?(machines: readonly MachineRecord[]): void
  /** Releases all resources without ending a job. */
  close(): Promise<void>
  /** Machines to boot ahead of need; `create` then runs without a job. */
  readonly pool?: PoolSettings
}

interface PoolSettings {
  /** How many machines of each kind. */
  readonly size: number
  readonly kinds: readonly string[]
  /** The kind that serves a job; undefined when no pool machine fits. */
  kindFor(manifest: Manifest): string | undefined
  /** Age at which a machine is replaced; absent means never. */
  readonly ageSeconds?: number
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
  /** The command or setting that fixes the problem. */
  readonly fix?: string
}
