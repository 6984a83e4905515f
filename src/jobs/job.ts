import type { JobState } from './states.ts'

/** A job as it is stored. The manifest is kept apart: lists never read it. */
export interface Job {
  readonly id: string
  readonly state: JobState
  /** First characters of the task, for lists. */
  readonly title: string
  readonly agentType: string
  /** As asked for: `auto` or a name. */
  readonly runtimeWanted: string
  /** As chosen when it was submitted. */
  readonly runtime: string
  /** The kept machine it asked for. */
  readonly wantsMachine: string | null
  readonly machineId: string | null
  readonly parentId: string | null
  readonly priority: number
  /** What its status tells: states; progress as well; the end of its output as well. */
  readonly statusMode: 'simple' | 'detailed' | 'streaming'
  readonly labels: Readonly<Record<string, string>>
  /** Who asked: `cli`, `mcp:claude-code`, `http`… */
  readonly origin: string
  readonly createdAt: number
  readonly provisioningAt: number | null
  readonly startedAt: number | null
  readonly completedAt: number | null
  readonly timeoutSeconds: number
  readonly attempts: number
  readonly cancelRequestedAt: number | null
  readonly heartbeatAt: number | null
  readonly progress: string | null
  readonly outputBytes: number
  /** How far the runtime's own log has been taken over. */
  readonly position: number
  /** Bytes that earlier attempts printed: where the output of this one begins. */
  readonly outputBase: number
  readonly exitCode: number | null
  readonly signal: string | null
  readonly error: JobError | null
  readonly result: JobOutcome | null
  /** How long each phase took, in milliseconds; grows while the job lives. */
  readonly phases: Phases
}

/** Why a job did not succeed. */
export interface JobError {
  readonly code: JobErrorCode
  readonly message: string
  readonly hint?: string
}

export type JobErrorCode =
  | 'exit_code'
  | 'signal'
  | 'limit'
  | 'agent'
  | 'timeout'
  | 'cancelled'
  | 'stale'
  /** The machine could not be had, or the command could not be started in it. */
  | 'machine'
  /** It had started; how it ended cannot be known any more. */
  | 'lost'
  | 'secret'
  | 'internal'

/** Known phases; a runtime adds its own (`clone`, `boot`, …). */
export type Phases = Readonly<Record<string, number>>

/** What a finished run leaves besides its output. */
export interface JobOutcome {
  readonly artifacts: readonly Artifact[]
  /** Why some matches were not brought back: links, sizes, counts. */
  readonly skippedArtifacts: readonly SkippedArtifact[]
  readonly patch: BlobRef | null
  readonly usage: Usage | null
  /** How the command was kept apart, in words: `namespaces`, `seccomp`, `no network`… or `none`. */
  readonly isolation: readonly string[]
  /** Which limit ended or hindered the job, in words that name it. */
  readonly limitsHit: readonly string[]
  /** Which computer ran it and why that one, where there was a choice. */
  readonly executedOn?: Placement
}

/** A computer, and why it was chosen. */
export interface Placement {
  readonly node: string
  readonly because: string
}

export interface BlobRef {
  readonly sha256: string
  readonly size: number
}

export interface Artifact extends BlobRef {
  /** Relative to the workspace. */
  readonly path: string
}

export interface SkippedArtifact {
  readonly path: string
  readonly reason: string
}

/** What an AI agent consumed, as it reported itself. */
export interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number
  readonly costUsd: number | null
  readonly turns: number | null
  readonly model: string | null
}

export type OutputStream = 'stdout' | 'stderr'

/** A piece of output. `offset` counts the bytes of both streams, in the order they were read; a gap was dropped. */
export interface OutputChunk {
  readonly stream: OutputStream
  readonly offset: number
  readonly data: Uint8Array
  readonly at: number
}

export interface JobEvent {
  /** Increases over all jobs: the cursor of a follower. */
  readonly seq: number
  readonly jobId: string
  readonly at: number
  readonly type: EventType
  readonly data: Readonly<Record<string, unknown>>
}

export type EventType =
  | 'submitted'
  | 'state'
  | 'progress'
  | 'cancel_requested'
  | 'machine'
  | 'retry'
  | 'reattached'
  | 'warning'
