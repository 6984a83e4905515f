import type { ResourceSample } from './resource-series.ts'
import type { JobState } from './states.ts'

export const STATUS_MODES = ['simple', 'detailed', 'streaming'] as const

/** A job as it is stored. The manifest is stored separately, because lists never read it. */
export interface Job {
  readonly id: string
  readonly state: JobState
  /** First characters of the task, for lists. */
  readonly title: string
  readonly agentType: string
  /** As requested: `auto` or a name. */
  readonly runtimeWanted: string
  /** As chosen at submission. */
  readonly runtime: string
  /** Id of the kept machine that the job asked for. */
  readonly wantsMachine: string | null
  readonly machineId: string | null
  /** Id of the daemon that has claimed the job; empty before that, and where there is only one daemon. */
  readonly daemon: string
  readonly parentId: string | null
  readonly priority: number
  /**
   * What the status includes. `simple`: the state; `detailed`: also progress; `streaming`: also the end of the
   * output.
   */
  readonly statusMode: (typeof STATUS_MODES)[number]
  readonly labels: Readonly<Record<string, string>>
  /** Who submitted the job: `cli`, `mcp:claude-code`, `http`… */
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
  /** Position in the provider's own log up to which output is stored. */
  readonly position: number
  /** Bytes printed by earlier attempts; the output of this attempt begins there. */
  readonly outputBase: number
  readonly exitCode: number | null
  readonly signal: string | null
  readonly error: JobError | null
  readonly result: JobOutcome | null
  /** Duration of each phase in milliseconds; grows while the job is active. */
  readonly phases: Phases
}

/** Why a job did not succeed. */
export interface JobError {
  readonly code: JobErrorCode
  readonly message: string
  readonly hint?: string
}

type JobErrorCode =
  | 'exit_code'
  | 'signal'
  | 'limit'
  | 'agent'
  | 'timeout'
  | 'cancelled'
  | 'stale'
  /** The machine could not be provisioned, or the command could not be started in it. */
  | 'machine'
  /** The command had started, and its end can no longer be determined. */
  | 'lost'
  | 'secret'
  /** A job that it needed did not succeed. */
  | 'needs'
  | 'internal'

/** A provider adds its own phases (`clone`, `boot`, …). */
export type Phases = Readonly<Record<string, number>>

/** What a finished run returns besides its output. */
export interface JobOutcome {
  readonly artifacts: readonly Artifact[]
  /** Matches that were not collected, each with the reason: links, sizes, counts. */
  readonly skippedArtifacts: readonly SkippedArtifact[]
  readonly patch: BlobRef | null
  readonly usage: Usage | null
  /** How the command was isolated: `namespaces`, `seccomp`, `no network`… or `none`. */
  readonly isolation: readonly string[]
  /** Limits that ended or restricted the job. */
  readonly limitsHit: readonly string[]
  /** CPU and memory over time; absent where the provider cannot tell. */
  readonly resources?: readonly ResourceSample[]
  /** Which computer ran the job, and why, where there was a choice. */
  readonly executedOn?: Placement
  /** The container image of the job, with its digest in the registry, or its id where it comes from none. */
  readonly image?: { readonly name: string; readonly digest: string }
}

/** A computer, and why the scheduler chose it. */
interface Placement {
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

/** What an AI agent consumed, as reported by the agent. */
export interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number
  readonly costUsd: number | null
  readonly turns: number | null
  readonly model: string | null
}

export type OutputStream = 'stdout' | 'stderr'

/** A piece of output. `offset` counts the bytes of both streams in read order; a gap means dropped bytes. */
export interface OutputChunk {
  readonly stream: OutputStream
  readonly offset: number
  readonly data: Uint8Array
  readonly at: number
}

export interface JobEvent {
  /** Increases over all jobs; used as the cursor for following events. */
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
  | 'review'
  | 'session'
