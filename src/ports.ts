import type { AppError } from './jobs/errors.ts'
import type {
  Artifact,
  BlobRef,
  EventType,
  Job,
  JobEvent,
  OutputChunk,
  Placement,
  SkippedArtifact,
  Usage,
} from './jobs/job.ts'
import type { Manifest } from './jobs/manifest.ts'
import type { JobState } from './jobs/states.ts'

/** The small interfaces the engine speaks to. Runtimes, blobs, clocks and secrets implement them. */

// ---------------------------------------------------------------- runtimes

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
  probe?(request: ProvisionRequest): Promise<Check>
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
  /** Finds the command again after a restart of the daemon; must never start it. */
  attach(run: AttachRequest): Promise<Outcome>
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

export interface Run {
  readonly job: Job
  readonly manifest: Manifest
  readonly machine: Machine
  readonly command: CommandSpec
  readonly sink: Sink
  /** Aborted to end the job; the reason is a StopReason. The run still resolves, with what was collected. */
  readonly stop: AbortSignal
  /** Aborted when the daemon leaves: let go, let the job live, resolve with `detached`. */
  readonly detach: AbortSignal
  remember(details: Record<string, unknown>): Promise<void>
}

/** What is known of a run after a restart: its command, and above all its secrets, are with the machine alone. */
export type AttachRequest = Omit<Run, 'command'>

/** Why a run is ended from outside. */
export interface StopReason {
  readonly kind: 'cancel' | 'timeout' | 'stale'
  readonly by: string
}

/** What to execute: made from the manifest, the agent and the secrets, just before the start. */
export interface CommandSpec {
  readonly argv: readonly string[]
  /** Without secrets. */
  readonly env: Readonly<Record<string, string>>
  /** Given as environment, kept in memory only, redacted from all that comes back. */
  readonly secrets: Readonly<Record<string, string>>
  /** How stdout is read: as it is, or as the event stream of an AI agent. */
  readonly format: 'text' | 'claude-stream-json'
  readonly network: 'none' | 'full' | readonly string[]
  readonly timeoutSeconds: number
  /** Programs outside the system directories that the command needs to see, read-only. */
  readonly programs: readonly string[]
}

export type Outcome =
  | { readonly kind: 'exit'; readonly exit: Exit }
  /** The machinery failed before the command started: it may be tried again. */
  | { readonly kind: 'not-started'; readonly error: AppError }
  /** It had started, and how it ended cannot be known any more. */
  | { readonly kind: 'lost'; readonly error: AppError }
  | { readonly kind: 'detached' }

export interface Exit {
  readonly code: number | null
  readonly signal: string | null
  /** Set when we ended it, by whatever level's clock or the user's wish. */
  readonly stopped: StopReason['kind'] | null
  readonly startedAt: number
  readonly endedAt: number
  readonly artifacts: readonly Artifact[]
  readonly skippedArtifacts: readonly SkippedArtifact[]
  readonly patch: BlobRef | null
  readonly usage: Usage | null
  readonly isolation: readonly string[]
  readonly limitsHit: readonly string[]
  /** Set when an agent reports its own failure although its process ended well, or the other way round. */
  readonly agentError: string | null
  readonly phases: Readonly<Record<string, number>>
  /** Which computer ran it and why that one, where there was a choice. */
  readonly executedOn?: Placement
}

/** Where a run reports. Everything is durable when the promise resolves. */
export interface Sink {
  /** How far the runtime's own log has been taken over; `attach` goes on from here, nothing is lost or doubled. */
  readonly position: number
  /** The command has started: the job becomes `running`. */
  started(at: number): Promise<void>
  write(batch: SinkBatch): Promise<void>
  heartbeat(): void
}

export interface SinkBatch {
  /** Position in the runtime's own log after this batch. */
  readonly position: number
  readonly chunks: readonly OutputChunk[]
  /** All bytes the command has printed so far, dropped ones included. */
  readonly outputBytes: number
  /** The latest progress line, if a new one came. */
  readonly progress?: string
  /** What is to be remembered of the machine, as `remember` does it, in the same step. */
  readonly remember?: Readonly<Record<string, unknown>>
}

// ---------------------------------------------------------------- store

/** Jobs and machines, durably. Every method that writes resolves when the write is on disk. */
export interface Store {
  /** Gives the earlier job when the idempotency key is known; `conflict` when its manifest was another. */
  insertJob(job: NewJob): Promise<Inserted>
  getJob(id: string): Promise<Job | undefined>
  getManifest(id: string): Promise<Manifest | undefined>
  listJobs(query: JobQuery): Promise<Job[]>
  /** Jobs whose machine may exist: not pending, not finished. */
  activeJobs(): Promise<Job[]>
  /** Pending jobs that wait for a kept machine which is no more. */
  strandedJobs(): Promise<Job[]>
  counts(): Readonly<Record<JobState, number>>
  /** Pending jobs of one runtime, those that may not start yet included. */
  waiting(runtime: string): number
  queuePosition(job: Job): Promise<number>
  oldestPending(): Promise<number | null>
  /** Takes the next pending job of a runtime and records its machine, in one step. */
  claim(request: ClaimRequest): Promise<{ job: Job; machine: MachineRecord } | undefined>
  /** Moves a job; false when it is not in a state from which that move exists (or not in one of `from`). */
  move(
    id: string,
    to: JobState,
    change: JobChanges,
    event: EventBody,
    options?: MoveOptions,
  ): Promise<boolean>
  /** Changes that are no transition: progress, phases, a wish to cancel. */
  update(id: string, change: JobChanges, event?: NewEvent): Promise<void>
  heartbeat(id: string, at: number): Promise<void>

  appendOutput(id: string, batch: OutputWrite, keep: { head: number; tail: number }): Promise<void>
  /** Stored chunks from an offset on, whole ones, until `maxBytes` is reached. */
  readOutput(id: string, from: number, maxBytes: number): Promise<OutputChunk[]>

  events(query: { jobId?: string; after: number; limit: number }): Promise<JobEvent[]>
  lastEvent(): Promise<number>

  insertMachine(machine: MachineRecord): Promise<void>
  getMachine(id: string): Promise<MachineRecord | undefined>
  listMachines(): Promise<MachineRecord[]>
  updateMachine(id: string, change: Partial<Omit<MachineRecord, 'id' | 'runtime'>>): Promise<void>
  /** From here on it is to be destroyed; tells what is known of it. */
  condemnMachine(id: string): Promise<MachineRecord | undefined>
  /** Takes a machine that waits for work out of the pool, to be destroyed; false when a job has it already. */
  retireMachine(id: string): Promise<boolean>
  /** Only after the runtime has confirmed that it is gone. */
  forgetMachine(id: string): Promise<void>

  /** Finished jobs to forget, oldest first; never one that still has a machine. */
  expiredJobs(policy: RetentionPolicy): Promise<string[]>
  /** Forgets a finished job and tells which blobs nobody needs any more; undefined when it is not finished. */
  deleteJob(id: string): Promise<readonly string[] | undefined>
  /** Gives the space of forgotten jobs back to the disk, a little at a time. */
  compact(): Promise<void>
  /** Blobs that jobs still refer to. */
  isBlobUsed(sha256: string): Promise<boolean>

  flush(): Promise<void>
  close(): Promise<void>
}

export interface Inserted {
  readonly job: Job
  readonly created: boolean
  /** Its place in the queue when it came; null for an earlier job. */
  readonly position: number | null
}

export interface NewJob {
  readonly id: string
  readonly manifest: Manifest
  readonly manifestHash: string
  readonly title: string
  readonly runtime: string
  readonly origin: string
  readonly createdAt: number
  readonly timeoutSeconds: number
  readonly parentId?: string
}

export type JobChanges = Partial<
  Pick<
    Job,
    | 'runtime'
    | 'machineId'
    | 'provisioningAt'
    | 'startedAt'
    | 'completedAt'
    | 'position'
    | 'outputBase'
    | 'attempts'
    | 'cancelRequestedAt'
    | 'progress'
    | 'exitCode'
    | 'signal'
    | 'error'
    | 'result'
  >
> & {
  /** Earliest time of the next claim, after a retry. */
  notBefore?: number
  /** Added to what is known. */
  phases?: Readonly<Record<string, number>>
}

/** Output, and what is written with it in the same step. */
export interface OutputWrite extends Omit<SinkBatch, 'remember'> {
  readonly heartbeatAt?: number
  readonly machine?: Pick<Machine, 'id' | 'details'>
}

export interface EventBody {
  readonly at: number
  readonly data: Readonly<Record<string, unknown>>
}

export interface NewEvent extends EventBody {
  readonly type: EventType
}

export interface JobQuery {
  readonly status?: JobState
  readonly label?: { name: string; value?: string }
  readonly parentId?: string
  readonly limit: number
  /** Goes on below this job. */
  readonly before?: string
}

export interface MoveOptions {
  /** Only from one of these. */
  readonly from?: readonly JobState[]
  /** Whoever is asked again tells it again: it need not survive a power cut. */
  readonly lazy?: boolean
}

export interface ClaimRequest {
  readonly runtime: string
  /** Which of the machines that wait would do for a job; any of those without a kind unless told otherwise. */
  poolKind?(manifest: Manifest): string | undefined
  /** What is known of the new machine already, to be written with it. */
  reserve?(request: ReserveRequest): Record<string, unknown> | undefined
  readonly machineId: string
  readonly now: number
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

export interface RetentionPolicy {
  readonly jobs: number
  readonly bytes: number
  /** Finished before this moment. */
  readonly before: number
}

// ---------------------------------------------------------------- the rest

/** Content-addressed files. */
export interface Blobs {
  /** Stores a stream; throws `too_large` past the limit and keeps nothing. */
  put(source: AsyncIterable<Uint8Array>, maxBytes: number): Promise<BlobRef>
  /** Takes over a finished file on the same disk. */
  adopt(path: string, ref: BlobRef): Promise<void>
  has(sha256: string): Promise<boolean>
  read(sha256: string, range?: { start: number; end: number }): AsyncIterable<Uint8Array>
  /** The file itself, for a runtime that hands it to a process. */
  path(sha256: string): string
  remove(sha256: string): Promise<void>
  /** Every stored blob, for the sweep of unreferenced ones. */
  list(): AsyncIterable<{ sha256: string; size: number; modifiedAt: number }>
}

export interface Clock {
  /** Wall clock in milliseconds: for what people read. It may jump. */
  now(): number
  /** Milliseconds that only go forward: for durations and deadlines. */
  monotonic(): number
}

export interface Secrets {
  /** Names that could be resolved, without resolving them. */
  names(): readonly string[]
  resolve(names: readonly string[], signal: AbortSignal): Promise<Record<string, string>>
}
