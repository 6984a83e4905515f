import type { AppError } from './jobs/errors.ts'
import type { Artifact, BlobRef, Job, OutputChunk, SkippedArtifact, Usage } from './jobs/job.ts'
import type { Manifest } from './jobs/manifest.ts'

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
  /** Whether it could run this manifest at all; the reason is shown to the user. Cheap: it is asked at every dispatch. */
  fits(manifest: Manifest): Fit
  /** Makes the machine exist. Calls `remember` with what identifies it before the call that creates it. */
  provision(request: ProvisionRequest): Promise<void>
  /** Starts the command on a provisioned machine and stays with it to its end. */
  start(run: Run): Promise<Outcome>
  /** Finds the command again after a restart of the daemon; must never start it. */
  attach(run: Run): Promise<Outcome>
  /** Idempotent. Resolves when the machine is confirmed gone, however it got there. */
  destroy(machine: Machine, signal: AbortSignal): Promise<void>
  /** Everything of ours that exists, recorded or not. */
  list(signal: AbortSignal): Promise<FoundMachine[]>
  /** Lets go of everything without ending a job. */
  close(): Promise<void>
  /** How many machines to keep booted ahead of need; absent or 0: none. `provision` then runs without a job. */
  readonly poolSize?: number
}

export type Fit = { ok: true } | { ok: false; reason: string }

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
  /** When it came into being, where that can be told: the reaper leaves young ones alone. */
  readonly createdAt?: number
}

export interface ProvisionRequest {
  readonly machine: Machine
  /** Absent for a machine of a pool. */
  readonly manifest?: Manifest
  /** Persists details with the machine record; await it before creating what they name. */
  remember(details: Record<string, unknown>): Promise<void>
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
