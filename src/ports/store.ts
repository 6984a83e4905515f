import type { EventType, Job, JobEvent, OutputChunk } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import type { JobState } from '../jobs/states.ts'
import type { Machine, MachineRecord } from './machine.ts'
import type { SinkBatch } from './run.ts'
import type { ReserveRequest } from './runtime.ts'

/** Jobs and machines, durably. Every method that writes resolves when the write is on disk. */
export interface Store {
  /** Gives the earlier job when the idempotency key is known; `conflict` when its manifest was another. */
  insertJob(job: NewJob): Promise<Inserted>
  getJob(id: string): Promise<Job | undefined>
  getManifest(id: string): Promise<Manifest | undefined>
  listJobs(query: JobQuery): Promise<Job[]>
  /** Jobs whose machine may exist: not pending, not finished. */
  activeJobs(): Promise<Job[]>
  /** Pending jobs whose time in the queue is over. */
  overdueJobs(now: number): Promise<Job[]>
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
  /** Only after the runtime has confirmed that it is gone; tells the job of it in the same step. */
  forgetMachine(id: string, told?: LastWord): Promise<void>

  /** Finished jobs to forget, oldest first; never one that still has a machine. */
  expiredJobs(policy: RetentionPolicy): Promise<string[]>
  /** Forgets a finished job and tells which blobs nobody needs any more; undefined when it is not finished. */
  deleteJob(id: string): Promise<readonly string[] | undefined>
  /** Gives the space of forgotten jobs back to the disk, a little at a time. */
  compact(): Promise<void>
  /** Whether a job refers to a blob, or somebody holds it. */
  isBlobUsed(sha256: string): Promise<boolean>
  /** Counts as a use until the job of that id is written: submitted, back in the queue, or finished. */
  holdBlob(sha256: string, holder: string): Promise<void>
  /** Forgets holds from before this moment whose holder is no unfinished job. */
  releaseStaleBlobs(before: number): Promise<void>

  /** The last time that was written down. */
  knownTime(): Promise<number | undefined>
  saveKnownTime(at: number): Promise<void>

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
  /** When it fails unless it has started. */
  readonly queueUntil?: number
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
  /** Null after a start: a retry may wait as long as it takes. */
  queueUntil?: null
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

/** What is told to the job of a machine that is gone. */
export interface LastWord {
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

export interface RetentionPolicy {
  readonly jobs: number
  readonly bytes: number
  /** Finished before this moment. */
  readonly before: number
}
