import type { AppError } from '../jobs/errors.ts'
import type { Job, JobOutcome, OutputChunk } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import type { Machine } from './machine.ts'

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

export interface Exit extends JobOutcome {
  readonly code: number | null
  readonly signal: string | null
  /** Set when we ended it, by whatever level's clock or the user's wish. */
  readonly stopped: StopReason['kind'] | null
  readonly startedAt: number
  readonly endedAt: number
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
  /** What is to be remembered of the machine, as `remember` does it, in the same step. */
  readonly remember?: Readonly<Record<string, unknown>>
}
