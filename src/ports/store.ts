import type { BlobRef, EventType, Job, JobEvent, OutputChunk } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import type { Review } from '../jobs/review.ts'
import type { Sample } from '../jobs/sample.ts'
import type { JobState, TerminalState } from '../jobs/states.ts'
import type { Machine, MachineRecord } from './machine.ts'
import type { SinkBatch } from './run.ts'

/**
 * Durable storage of jobs and machines. Every method that writes resolves when the write is on disk, except lazy writes.
 * Writes take effect in the order of the calls, and those of one turn of the event loop may share a transaction: a
 * claim that follows an insert finds its job. A read sees every write that was resolved before the call. The store
 * notifies nobody: the engine tells its listeners after each write.
 */
export interface Store {
  /** Id of this daemon in the records that it owns; empty where it is the only one. */
  readonly daemon: string
  /** Returns the earlier job when the idempotency key is known; throws `conflict` when its manifest differs. */
  insertJob(job: NewJob): Promise<Inserted>
  getJob(id: string): Promise<Job | undefined>
  getManifest(id: string): Promise<Manifest | undefined>
  listJobs(query: JobQuery): Promise<Job[]>
  /** Jobs of this daemon that may have a machine: neither pending nor finished. */
  activeJobs(): Promise<Job[]>
  /** Pending jobs whose queue timeout has expired. */
  overdueJobs(now: number): Promise<Job[]>
  /** Pending jobs that wait for a kept machine that no longer exists. */
  strandedJobs(): Promise<Job[]>
  counts(): Promise<Readonly<Record<JobState, number>>>
  /** Number of pending jobs, to compare with a limit. In a shared database it may be a second old. */
  pending(): Promise<number>
  /** Whether a provider has pending jobs, including those that may not start yet. */
  hasPending(runtime: string): Promise<boolean>
  queuePosition(job: Job): Promise<number>
  /** How many jobs ended how, since a time of the wall clock. */
  endedSince(since: number): Promise<Readonly<Record<TerminalState, number>>>
  oldestPending(): Promise<number | null>
  /** Claims the next pending job of a provider and records its machine, in one transaction. */
  claim(request: ClaimRequest): Promise<Claimed | undefined>
  /** Claims the next pending batch, which needs no machine. */
  claimBatch(now: number): Promise<Omit<Claimed, 'machine'> | undefined>
  /** Moves a job to another state; false when the current state (or `from`) does not allow it. */
  move(
    id: string,
    to: JobState,
    change: JobChanges,
    event: EventBody,
    options?: MoveOptions,
  ): Promise<boolean>
  /** Changes without a state transition: progress, phases, a cancellation request. */
  update(id: string, change: JobChanges, event?: NewEvent): Promise<void>
  heartbeat(id: string, at: number): Promise<void>

  /** The needed jobs of waiting jobs that can start now or never, with the state of each; null when it was deleted. */
  settledNeeds(): Promise<NeededJob[]>
  /** Ids of all jobs that a waiting job needs. */
  neededJobs(): Promise<string[]>
  /** Ids of the jobs that a waiting job still waits for. */
  unfinishedNeeds(id: string): Promise<string[]>
  /** Id of a job that waits for this one. */
  waitingJob(neededId: string): Promise<string | undefined>
  /** Lets a job start that waited for others; false when it no longer waits. */
  releaseJob(id: string, release: Release): Promise<boolean>

  appendOutput(id: string, batch: OutputWrite, keep: { head: number; tail: number }): Promise<void>
  /** Whole stored chunks starting at an offset, until `maxBytes` is reached. */
  readOutput(id: string, from: number, maxBytes: number): Promise<OutputChunk[]>

  events(query: { jobId?: string; after: number; limit: number }): Promise<JobEvent[]>
  lastEvent(): Promise<number>

  /** Figures of the minute that starts at `at`. */
  measureMinute(at: number): Promise<Sample>
  /** Stores the figures of a minute and deletes those before `keepFrom`. */
  saveSample(sample: Sample, keepFrom: number): Promise<void>
  samples(since: number): Promise<Sample[]>

  getReview(id: string): Promise<Review | undefined>
  /**
   * Replaces a review in one transaction, together with an event. `change` must be pure: it runs again when the
   * transaction is repeated.
   */
  changeReview(id: string, change: (review: Review) => Review, event?: NewEvent): Promise<Review>

  /** Records a machine of this daemon. */
  insertMachine(machine: Omit<MachineRecord, 'daemon'>): Promise<void>
  getMachine(id: string): Promise<MachineRecord | undefined>
  /** The machines of all daemons. */
  listMachines(): Promise<MachineRecord[]>
  ownMachines(): Promise<MachineRecord[]>
  updateMachine(id: string, change: Partial<Omit<MachineRecord, 'id' | 'runtime' | 'daemon'>>): Promise<void>
  /** Marks a machine for destruction and returns its record. */
  markDestroying(id: string): Promise<MachineRecord | undefined>
  /** Takes an idle machine out of the pool for destruction; false when a job already has it. */
  markIdleDestroying(id: string): Promise<boolean>
  /**
   * Deletes the record after the provider has confirmed the destruction, and adds an event to the job in the same
   * transaction.
   */
  deleteMachine(id: string, report?: DestructionReport): Promise<void>

  /** Finished jobs to delete, oldest first; never one that still has a machine. */
  expiredJobs(policy: RetentionPolicy): Promise<string[]>
  /**
   * Deletes a finished job and returns the blobs that are no longer referenced; undefined when it is not finished.
   */
  deleteJob(id: string): Promise<readonly string[] | undefined>
  /** Returns the space of deleted jobs to the file system, a little at a time. */
  compact(): Promise<void>
  /** Whether a job refers to a blob, or a holder holds it. */
  isBlobUsed(sha256: string): Promise<boolean>
  /** Holds the blob until the job with that id is written: submitted, requeued or finished. */
  holdBlob(sha256: string, holder: string): Promise<void>
  /** Removes holds older than this time, except those of unfinished jobs. */
  releaseStaleBlobs(before: number): Promise<void>

  /** The last recorded time. */
  knownTime(): Promise<number | undefined>
  saveKnownTime(at: number): Promise<void>

  flush(): Promise<void>
  close(): Promise<void>
}

export interface Inserted {
  readonly job: Job
  readonly created: boolean
  /** Position in the queue after insertion; null for an earlier job. */
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
  /** The job fails if it has not started by then. */
  readonly queueUntil?: number
  readonly parentId?: string
  /** Only this daemon may claim the job. */
  readonly wantsDaemon?: string
}

export type JobChanges = Partial<
  Pick<
    Job,
    | 'runtime'
    | 'machineId'
    | 'daemon'
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
  /** Null after a start: a retry may wait without limit. */
  queueUntil?: null
  /** Earliest time of the next claim, after a retry. */
  notBefore?: number
  /** Merged into the stored phases. */
  phases?: Readonly<Record<string, number>>
}

/** Output, and what is written with it in the same transaction. */
export interface OutputWrite extends Omit<SinkBatch, 'remember'> {
  readonly heartbeatAt?: number
  readonly machine?: Pick<Machine, 'id' | 'details'>
}

export interface NeededJob {
  readonly jobId: string
  readonly neededId: string
  readonly state: JobState | null
}

/** What a job gets when the jobs it needs have succeeded. */
export interface Release {
  readonly at: number
  readonly queueUntil: number
  /** Replaces the workspace; absent when the needed jobs have no artifacts. */
  readonly workspace?: BlobRef
}

export interface EventBody {
  readonly at: number
  readonly data: Readonly<Record<string, unknown>>
}

/** The last event of a job whose machine is destroyed. */
interface DestructionReport {
  readonly jobId: string
  readonly phases: NonNullable<JobChanges['phases']>
  readonly event: NewEvent
}

export interface NewEvent extends EventBody {
  readonly type: EventType
}

export interface JobQuery {
  readonly status?: JobState
  readonly label?: { name: string; value?: string }
  /** Null: jobs without a parent. */
  readonly parentId?: string | null
  readonly runtime?: string
  readonly agent?: string
  /** The beginning of the origin. */
  readonly origin?: string
  /** The node that a finished job ran on. */
  readonly node?: string
  readonly since?: number
  readonly until?: number
  /** Newest first by default. */
  readonly sort?: 'newest' | 'oldest' | 'longest'
  /** Part of the title, in any case, or the beginning of an id. */
  readonly search?: string
  readonly limit: number
  /** Returns the jobs that follow this one in the order. */
  readonly before?: string
}

export interface MoveOptions {
  /** Allowed current states. */
  readonly from?: readonly JobState[]
  /** The write need not survive a power cut, because the event is reported again after one. */
  readonly lazy?: boolean
}

export interface ClaimRequest {
  readonly runtime: string
  /**
   * Which pool machine fits a job; by default any machine without a kind. Must be pure: it runs inside the
   * transaction, and again when that is repeated.
   */
  poolKind?(manifest: Manifest): string | undefined
  readonly machineId: string
  readonly now: number
}

export interface Claimed {
  readonly job: Job
  readonly manifest: Manifest
  readonly machine: MachineRecord
}

export interface RetentionPolicy {
  readonly jobs: number
  readonly bytes: number
  /** Jobs that finished before this time. */
  readonly before: number
}
