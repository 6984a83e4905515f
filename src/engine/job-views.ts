import type { Job } from '../jobs/job.ts'
import type { ResourceSample } from '../jobs/resource-series.ts'
import type { DaemonRecord, MachineRecord } from '../ports.ts'
import type { BatchMember, DaemonSummary, JobSummary, JobView, MachineView, ResourceView } from './deputy.ts'

/** Fields of the public JSON that are not in the job record. Fields are added over time, never renamed. */
export interface ViewExtras {
  readonly queuePosition: number | null
  readonly where?: string | undefined
  /** Ids of the jobs that the job waits for. */
  readonly waitsFor?: readonly string[]
  readonly outputTail?: string
}

export const jobView = (
  job: Job,
  { queuePosition, where, waitsFor = [], outputTail }: ViewExtras,
): JobView => ({
  job_id: job.id,
  status: job.state,
  task: job.title,
  agent: job.agentType,
  runtime: job.runtime,
  machine_id: job.machineId,
  ...(where !== undefined && { where }),
  parent_id: job.parentId,
  origin: job.origin,
  // Before the start, progress says what the machine waits for; every status mode shows that.
  progress:
    job.statusMode === 'simple' && job.state !== 'provisioning' && job.state !== 'pending'
      ? null
      : waitsFor.length === 0
        ? job.progress
        : `waits for job ${waitsFor.join(', ')}`,
  ...(waitsFor.length > 0 && { waits_for: waitsFor }),
  ...(outputTail !== undefined && { output_tail: outputTail }),
  queue_position: queuePosition,
  created_at: iso(job.createdAt),
  started_at: maybeIso(job.startedAt),
  completed_at: maybeIso(job.completedAt),
  duration_seconds: duration(job),
  timeout_seconds: job.timeoutSeconds,
  attempts: job.attempts,
  cancel_requested: job.cancelRequestedAt !== null,
  phases: job.phases,
  exit_code: job.exitCode,
  signal: job.signal,
  error: job.error,
  output_bytes: job.outputBytes,
  labels: job.labels,
})

export const resourceView = ({ at, cpuMs, memory }: ResourceSample): ResourceView => ({
  seconds: at / 1000,
  cpu_seconds: cpuMs / 1000,
  memory_bytes: memory,
})

export const jobSummary = (job: Job): JobSummary => ({
  job_id: job.id,
  status: job.state,
  task: job.title,
  agent: job.agentType,
  runtime: job.runtime,
  ...(job.parentId !== null && { parent_id: job.parentId }),
  created_at: iso(job.createdAt),
  started_at: maybeIso(job.startedAt),
  duration_seconds: duration(job),
  exit_code: job.exitCode,
  ...(Object.keys(job.labels).length > 0 && { labels: job.labels }),
})

export const batchMember = (job: Job): BatchMember => ({
  job_id: job.id,
  status: job.state,
  exit_code: job.exitCode,
  duration_seconds: duration(job),
  error: job.error?.message ?? null,
  artifacts: job.result?.artifacts.map(({ path }) => path) ?? [],
  has_patch: Boolean(job.result?.patch),
  usage: job.result?.usage ?? null,
})

export const machineView = (machine: MachineRecord, where?: string): MachineView => ({
  machine_id: machine.id,
  runtime: machine.runtime,
  ...(where !== undefined && { where }),
  job_id: machine.jobId,
  state: machine.state,
  created_at: iso(machine.createdAt),
  lease_until: maybeIso(machine.leaseUntil),
  problem: machine.lastError,
})

export const daemonView = (daemon: DaemonRecord): DaemonSummary => ({
  daemon_id: daemon.id,
  name: daemon.name,
  host: daemon.host,
  version: daemon.version,
  state: daemon.state === 'up' && daemon.isDraining ? 'draining' : daemon.state,
  runtimes: Object.fromEntries(daemon.runtimes.map(({ name, slots }) => [name, slots])),
  key_id: daemon.keyId,
  jobs: daemon.jobs,
  started_at: iso(daemon.startedAt),
  lease_until: iso(daemon.leaseUntil),
})

/** Returns the first line of the task, shortened for lists. */
export const titleOf = (task: string): string => {
  const line = task.trim().split('\n', 1)[0] ?? ''
  const shown = line.length > TITLE ? `${line.slice(0, TITLE - 1)}…` : line
  return shown === task.trim() || shown.endsWith('…') ? shown : `${shown} …`
}

const TITLE = 100

/** Measured by the provider's own clock when possible, because the wall clock may jump. */
const duration = (job: Job): number | null => {
  if (job.completedAt === null || job.startedAt === null) return null
  const ms = job.phases.running ?? Math.max(0, job.completedAt - job.startedAt)
  return Math.round(ms) / 1000
}

const iso = (at: number): string => new Date(at).toISOString()
const maybeIso = (at: number | null): string | null => (at === null ? null : iso(at))
