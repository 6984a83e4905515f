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
  /** Aborted to end the job, with a StopReason. The run still resolves, with what was collected. */
  readonly stop: AbortSignal
  /** Aborted when the daemon stops: disconnect, leave the job running, and resolve with `detached`. */
  readonly detach: AbortSignal
  remember(details: Record<string, unknown>): Promise<void>
}

/** What is known of a run after a restart. Only the machine still has its command and secrets. */
export type AttachRequest = Omit<Run, 'command'>

/** Why the engine ends a run. */
export interface StopReason {
  readonly kind: 'cancel' | 'timeout' | 'stale'
  readonly by: string
}

/** What to execute; made from the manifest, the agent and the secrets immediately before the start. */
export interface CommandSpec {
  readonly argv: readonly string[]
  /** Does not contain secrets. */
  readonly env: Readonly<Record<string, string>>
  /** Passed as environment, kept in memory only, redacted from everything the job returns. */
  readonly secrets: Readonly<Record<string, string>>
  /** How stdout is parsed: as plain text, or as the event stream of an AI agent. */
  readonly format: 'text' | 'claude-stream-json'
  readonly network: 'none' | 'full' | readonly string[]
  readonly timeoutSeconds: number
  /** Programs outside the system directories that the command may read. */
  readonly programs: readonly string[]
}

export type Outcome =
  | { readonly kind: 'exit'; readonly exit: Exit }
  /** The machine failed before the command started; a retry is safe. */
  | { readonly kind: 'not-started'; readonly error: AppError }
  /** The command had started, and its end can no longer be determined. */
  | { readonly kind: 'lost'; readonly error: AppError }
  | { readonly kind: 'detached' }

export interface Exit extends JobOutcome {
  readonly code: number | null
  readonly signal: string | null
  /** Set when the engine or the machine ended the command: on timeout or at the user's request. */
  readonly stopped: StopReason['kind'] | null
  readonly startedAt: number
  readonly endedAt: number
  /** Set when an agent reports a failure although its process exited with 0, or the reverse. */
  readonly agentError: string | null
  readonly phases: Readonly<Record<string, number>>
}

/** Receives the reports of a run. Everything is durable when the promise resolves. */
export interface Sink {
  /**
   * Position in the provider's own log up to which everything is stored. `attach` continues from here, so nothing is
   * lost or duplicated.
   */
  readonly position: number
  /**
   * The command has started: the job becomes `running`. `lazy`: `attach` reports the start again if this computer loses
   * it in a power cut, so the write need not be flushed at once.
   */
  started(at: number, options?: { readonly lazy?: boolean }): Promise<void>
  write(batch: SinkBatch): Promise<void>
  /** From the first call on, a run that sends no more heartbeats is given up. */
  heartbeat(): void
}

export interface SinkBatch {
  /** Position in the provider's own log after this batch. */
  readonly position: number
  readonly chunks: readonly OutputChunk[]
  /** Bytes that the command has printed so far, dropped ones included. */
  readonly outputBytes: number
  /** The latest progress line, if there is a new one. */
  readonly progress?: string
  /** Details to store in the machine record, like `remember`, in the same transaction. */
  readonly remember?: Readonly<Record<string, unknown>>
}
