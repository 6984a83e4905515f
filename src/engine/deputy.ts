import type { AllowedDirectories } from '../jobs/allowed-directories.ts'
import type { Artifact, JobError, JobEvent, Phases, SkippedArtifact, Usage } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import type { Verdict } from '../jobs/review.ts'
import type { Sample } from '../jobs/sample.ts'
import type { JobState, TerminalState } from '../jobs/states.ts'
import type { Readiness, Session, SessionRequest } from '../ports.ts'

/**
 * The operations of Deputy. HTTP and MCP call them inside the daemon; the CLI calls them over the control socket. Views
 * are the public JSON: snake_case, ISO times, fields are only added.
 */
export interface Deputy {
  /** The job is durable when the promise resolves. The same idempotency key and manifest return the same job. */
  submit(manifest: unknown, origin: string, options?: SubmitOptions): Promise<JobView>
  get(id: string): Promise<JobView>
  /** The checked manifest: with defaults, and with the names of secrets, never their values. */
  manifest(id: string): Promise<Manifest>
  /** Waits until the job's status differs from `since` (or is terminal, without `since`), or until the timeout. */
  wait(id: string, options: WaitOptions): Promise<JobView>
  list(filter: ListFilter): Promise<JobPage>
  result(id: string, options: { maxBytes?: number }): Promise<JobResult>
  output(id: string, options: OutputOptions): Promise<OutputPage>
  /** Follows the output to its end and reports gaps. */
  follow(id: string, options: { cursor?: number; signal: AbortSignal }): AsyncIterable<OutputPage>
  events(id: string, options: { after?: number; limit?: number }): Promise<JobEvent[]>
  /** Follows the events of one job until it ends, or of all jobs until the signal aborts. */
  followEvents(options: { id?: string; after?: number; signal: AbortSignal }): AsyncIterable<JobEvent>
  cancel(id: string, by: string): Promise<JobView>
  /** Deletes a finished job with its output, artifacts and kept machine. */
  delete(id: string): Promise<void>
  artifacts(id: string): Promise<readonly Artifact[]>
  openArtifact(id: string, path: string): Promise<OpenArtifact>
  openPatch(id: string): Promise<OpenArtifact>
  /** The user's review of a job's changes: viewed files and the decision. */
  review(id: string): Promise<ReviewView>
  markViewed(id: string, path: string, isViewed: boolean): Promise<ReviewView>
  /** Applies the patch to the directory that the workspace was copied from, wholly or not at all. */
  applyChanges(id: string, by: string): Promise<ReviewView>
  rejectChanges(id: string, by: string, comment?: string): Promise<ReviewView>
  /** Submits a job that continues with the changes so far and the comment. */
  handBack(id: string, by: string, comment: string): Promise<ReviewView>
  /** Stores an input (a workspace tar) for a later submit. The sweeper removes unused ones. */
  putBlob(source: AsyncIterable<Uint8Array>): Promise<{ sha256: string; size: number }>
  /** Runs a program in the machine of a running job, beside the job. Recorded as an event. */
  openSession(id: string, request: SessionRequest, by: string): Promise<Session>
  machines(): Promise<MachineView[]>
  /** The daemons that share the database; empty with SQLite. */
  daemons(): Promise<DaemonSummary[]>
  /** Stops or resumes the claims of a daemon. Throws `not_found` for an unknown name. */
  drainDaemon(name: string, draining: boolean): Promise<void>
  destroyMachine(id: string): Promise<void>
  doctor(signal: AbortSignal): Promise<Readiness[]>
  /**
   * Like doctor, and also boots a temporary machine where only a real machine proves the setup. Takes minutes and
   * destroys the machine.
   */
  probe(signal: AbortSignal): Promise<Readiness[]>
  /** Calls the listener after each durable change of any job. Returns the function that unsubscribes. */
  onChange(listener: (change: JobChange) => void): () => void
  stats(): Promise<Stats>
  /** Figures of each minute since a time of the wall clock in milliseconds, oldest first, without quiet minutes. */
  history(since: number): Promise<Sample[]>
}

export interface SubmitOptions {
  readonly parentId?: string
  /** Directories that the client may name as a workspace, besides the configured ones. Absent: none. */
  readonly directories?: AllowedDirectories
}

export interface JobChange {
  readonly jobId: string
  /** `output`: more output; `state`: status, progress or another field of the view. */
  readonly kind: 'state' | 'output'
}

export interface WaitOptions {
  since?: JobState
  timeoutMs: number
  signal: AbortSignal
}

export interface ListFilter {
  status?: JobState
  /** `name` or `name=value`. */
  label?: string
  /** Members of this batch; `none`: jobs that are no members of a batch. */
  parent?: string
  runtime?: string
  agent?: string
  /** The client that submitted the job, or the beginning of its name. */
  origin?: string
  /** The node that the job ran on. */
  node?: string
  /** Submitted at or after this time; ISO 8601. */
  since?: string
  /** Submitted before this time; ISO 8601. */
  until?: string
  /** `newest` first by default. */
  sort?: 'newest' | 'oldest' | 'longest'
  /** Part of the first line of the task, in any case, or the beginning of an id. */
  search?: string
  limit?: number
  cursor?: string
}

export interface OutputOptions {
  /** Byte offset to continue from; 0 or absent: the beginning. Negative: that many bytes before the end. */
  cursor?: number
  maxBytes?: number
  waitMs?: number
  signal: AbortSignal
}

export interface OutputPage {
  readonly job_id: string
  readonly status: JobState
  /** Pieces in order. A piece with `skipped` reports how many bytes were dropped there. */
  readonly pieces: readonly OutputPiece[]
  readonly next_cursor: number
  /** The job is finished and `next_cursor` is the end of its output. */
  readonly done: boolean
}

export type OutputPiece =
  | {
      readonly stream: 'stdout' | 'stderr'
      readonly offset: number
      readonly data: Uint8Array
      readonly at: number
    }
  | { readonly skipped: number; readonly offset: number }

export interface JobSummary {
  readonly job_id: string
  readonly status: JobState
  readonly task: string
  readonly agent: string
  readonly runtime: string
  /** The batch that the job is a member of. */
  readonly parent_id?: string | null
  readonly created_at: string
  readonly started_at: string | null
  readonly duration_seconds: number | null
  readonly exit_code: number | null
  readonly labels?: Readonly<Record<string, string>>
}

export interface JobPage {
  readonly jobs: readonly JobSummary[]
  readonly next_cursor: string | null
}

export interface JobView {
  readonly job_id: string
  readonly status: JobState
  readonly task: string
  readonly agent: string
  /** The provider that the job uses. */
  readonly runtime: string
  readonly machine_id: string | null
  /** The node or VM that the job runs on or ran on, if known. */
  readonly where?: string
  /** The job that submitted this one, for example a batch. */
  readonly parent_id: string | null
  readonly origin: string
  /** The latest progress line, unless the status mode is `simple`. Before the start: what the machine waits for. */
  readonly progress: string | null
  /** The last lines of output of a running job, when the status mode is `streaming`. */
  readonly output_tail?: string
  /** Ids of the jobs that must succeed before this one starts. */
  readonly waits_for?: readonly string[]
  /** 1 is next; only while pending, and not while it waits for other jobs. */
  readonly queue_position: number | null
  readonly created_at: string
  readonly started_at: string | null
  readonly completed_at: string | null
  readonly duration_seconds: number | null
  readonly timeout_seconds: number
  readonly attempts: number
  readonly cancel_requested: boolean
  readonly phases: Phases
  readonly exit_code: number | null
  readonly signal: string | null
  readonly error: JobError | null
  readonly output_bytes: number
  readonly labels: Readonly<Record<string, string>>
  /** Why this provider; only in the answer to the submit. */
  readonly runtime_because?: string
  /** True when the submit returned an earlier job with the same idempotency key. */
  readonly deduplicated?: boolean
}

export interface JobResult extends JobView {
  readonly output: string
  /** What `output` omits, in bytes, and where. */
  readonly truncated: {
    readonly skipped_bytes: number
    readonly head_bytes: number
    readonly tail_bytes: number
  } | null
  readonly artifacts: readonly Artifact[]
  readonly skipped_artifacts: readonly SkippedArtifact[]
  /** Globs of the manifest that matched no file; absent when all did. */
  readonly unmatched_artifacts?: readonly string[]
  readonly patch: { readonly sha256: string; readonly size: number } | null
  readonly usage: Usage | null
  readonly isolation: readonly string[]
  readonly limits_hit: readonly string[]
  /** CPU and memory over time, at most 60 samples; null where the runtime cannot tell. */
  readonly resources: readonly ResourceView[] | null
  /** The jobs of a batch in the order of their submission, at most 100; absent for other jobs. */
  readonly members?: readonly BatchMember[]
  /** Which computer ran the job and why, when routing had a choice. */
  readonly executed_on: { readonly node: string; readonly because: string } | null
}

/** What a job had used at one moment. */
export interface ResourceView {
  /** Since the command started. */
  readonly seconds: number
  /** CPU time so far. */
  readonly cpu_seconds: number
  /** Memory of its processes, without files. */
  readonly memory_bytes: number
}

/** How one job of a batch ended. */
export interface BatchMember {
  readonly job_id: string
  readonly status: JobState
  readonly exit_code: number | null
  readonly duration_seconds: number | null
  readonly error: string | null
  /** Paths. */
  readonly artifacts: readonly string[]
  readonly has_patch: boolean
  readonly usage: Usage | null
}

export interface OpenArtifact {
  readonly path: string
  readonly sha256: string
  readonly size: number
  read(range?: { start: number; end: number }): AsyncIterable<Uint8Array>
}

export interface ReviewView {
  readonly job_id: string
  /** The directory that the workspace was copied from, when it is on the computer of the daemon. */
  readonly directory: string | null
  readonly viewed: readonly string[]
  readonly decision: {
    readonly verdict: Verdict
    readonly by: string
    readonly at: string
    readonly comment: string | null
    readonly directory: string | null
    readonly follow_up: string | null
  } | null
}

export interface MachineView {
  readonly machine_id: string
  readonly runtime: string
  /** The node that the machine is on, or the name of its VM. */
  readonly where?: string
  readonly job_id: string | null
  readonly state: string
  readonly created_at: string
  readonly lease_until: string | null
  /** Why the machine could not be destroyed, and what to do. */
  readonly problem: string | null
}

/** A daemon of the fleet. */
export interface DaemonSummary {
  readonly daemon_id: string
  readonly name: string
  readonly host: string
  readonly version: string
  /** `up`, `draining`, `stopped`, or `gone`: it did not renew its lease. */
  readonly state: string
  /** Slots of each runtime. */
  readonly runtimes: Readonly<Record<string, number>>
  /** Identifies its `fleet.key`; null when it has none. Daemons with the same key take over from each other. */
  readonly key_id: string | null
  /** Jobs that it runs, or ran when it went. */
  readonly jobs: number
  readonly started_at: string
  readonly lease_until: string
}

export interface Stats {
  readonly jobs: Readonly<Record<JobState, number>>
  readonly machines: Readonly<Record<string, number>>
  /** Jobs that ended in the last 24 hours. */
  readonly last_day: Readonly<Record<TerminalState, number>>
  /** Age of the oldest pending job, in seconds. */
  readonly oldest_pending_seconds: number
}
