import { BATCH } from '../jobs/batch-command.ts'
import { AppError } from '../jobs/errors.ts'
import type { Job } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import { poolKindOf } from '../jobs/pool-kind.ts'
import {
  isTerminal,
  type JobState,
  STATES,
  sourcesOf,
  TERMINAL_STATES,
  type TerminalState,
} from '../jobs/states.ts'
import type { Claimed, ClaimRequest, EventBody, JobChanges, NewEvent, NewJob } from '../ports.ts'
import { insertEvent } from './events-table.ts'
import { insertMachine } from './machines-table.ts'
import { deleteNeeds, insertNeeds } from './needs-table.ts'
import { jobAssignments, oneOf, toJob, toMachine } from './rows.ts'
import { all, get, run, type Work } from './sql.ts'

/** SQL statements on jobs. The caller holds the transaction for those that write. */

export function* insertJob(job: NewJob): Work<{ job: Job; created: boolean }> {
  const { manifest } = job
  const key = manifest.idempotency_key ?? null
  const { row } = yield get(
    `insert into jobs (id, state, title, agent_type, runtime_wanted, runtime, wants_machine, parent_id, priority,
       status_mode, labels,
       origin, created_at, timeout_seconds, queue_until, idempotency_key, manifest_hash, wants_daemon)
     values (?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     on conflict (idempotency_key) do nothing
     returning *`,
    job.id,
    job.title,
    manifest.agentType,
    manifest.runtime,
    job.runtime,
    manifest.machine ?? null,
    job.parentId ?? null,
    manifest.priority,
    manifest.statusMode,
    JSON.stringify(manifest.labels ?? {}),
    job.origin,
    job.createdAt,
    job.timeoutSeconds,
    job.queueUntil ?? null,
    key,
    job.manifestHash,
    job.wantsDaemon ?? null,
  )
  if (row === undefined) return { job: yield* earlierJob(String(key), job.manifestHash), created: false }
  yield run('insert into manifests (job_id, body) values (?, ?)', job.id, JSON.stringify(manifest))
  for (const [name, value] of Object.entries(manifest.labels ?? {}))
    yield run('insert into labels (name, value, seq) values (?, ?, ?)', name, value, Number(row.seq))
  yield* insertNeeds(job.id, manifest.needs ?? [])
  yield* insertEvent(job.id, {
    type: 'submitted',
    at: job.createdAt,
    data: { by: job.origin, runtime: job.runtime },
  })
  return { job: toJob(row), created: true }
}

function* earlierJob(key: string, manifestHash: string): Work<Job> {
  const { row } = yield get('select * from jobs where idempotency_key = ?', key)
  if (row?.manifest_hash !== manifestHash) throw keyConflict(key, String(row?.id))
  return toJob(row)
}

const keyConflict = (key: string, id: string): AppError =>
  new AppError(
    'conflict',
    `The idempotency key '${key}' belongs to job ${id}, which has a different manifest.`,
    {
      hint: 'Use a new key for a new job; repeat a key only with the same manifest.',
      details: { job_id: id },
    },
  )

export function* getJob(id: string): Work<Job | undefined> {
  const { row } = yield get('select * from jobs where id = ?', id)
  return row && toJob(row)
}

export function* getManifest(id: string): Work<Manifest | undefined> {
  const { row } = yield get('select body from manifests where job_id = ?', id)
  return row && (JSON.parse(String(row.body)) as Manifest)
}

export function* activeJobs(daemon: string): Work<Job[]> {
  const { rows } = yield all(
    `select * from jobs
     where completed_at is null and state in ('provisioning', 'running') and daemon = ? order by seq`,
    daemon,
  )
  return rows.map(toJob)
}

export function* overdueJobs(now: number): Work<Job[]> {
  const { rows } = yield all(
    `select * from jobs
     where completed_at is null and state = 'pending' and queue_until is not null and queue_until <= ?
     order by queue_until limit 500`,
    now,
  )
  return rows.map(toJob)
}

export function* strandedJobs(): Work<Job[]> {
  const { rows } = yield all(
    `select * from jobs
     where completed_at is null and state = 'pending' and wants_machine is not null
       and not exists (select 1 from machines m where m.id = wants_machine and m.state <> 'destroying')`,
  )
  return rows.map(toJob)
}

export function* countJobs(): Work<Record<JobState, number>> {
  const counts = Object.fromEntries(STATES.map(state => [state, 0])) as Record<JobState, number>
  const { rows } = yield all('select state, count(*) as count from jobs group by state')
  for (const row of rows) counts[oneOf(STATES, row.state)] = Number(row.count)
  return counts
}

export function* pendingJobs(): Work<number> {
  const { row } = yield get(
    `select count(*) as count from jobs where completed_at is null and state = 'pending'`,
  )
  return Number(row?.count)
}

export function* hasPending(runtime: string): Work<boolean> {
  const { row } = yield get(
    `select 1 from jobs where completed_at is null and state = 'pending' and runtime = ? limit 1`,
    runtime,
  )
  return row !== undefined
}

export function* endedSince(since: number): Work<Record<TerminalState, number>> {
  const counts = { success: 0, failed: 0, timeout: 0, cancelled: 0 }
  const { rows } = yield all(
    'select state, count(*) as count from jobs where completed_at >= ? group by state',
    since,
  )
  for (const row of rows) counts[oneOf(TERMINAL_STATES, row.state)] = Number(row.count)
  return counts
}

export function* queuePosition(job: Job): Work<number> {
  const { row } = yield get(
    // Two ranges of the queue index; a single combined condition would scan every row.
    `select
       (select count(*) from jobs
        where completed_at is null and state = 'pending' and runtime = ?1 and priority > ?2) +
       (select count(*) from jobs
        where completed_at is null and state = 'pending' and runtime = ?1 and priority = ?2
          and seq < (select seq from jobs where id = ?3)) as ahead`,
    job.runtime,
    job.priority,
    job.id,
  )
  return Number(row?.ahead ?? 0) + 1
}

export function* oldestPending(): Work<number | null> {
  const { row } = yield get(
    `select min(created_at) as at from jobs where completed_at is null and state = 'pending'`,
  )
  return row?.at === null || row?.at === undefined ? null : Number(row.at)
}

/** Writes the machine record with the claim, so that a machine is recorded before it is created. */
export function* claim(request: ClaimRequest, daemon: string): Work<Claimed | undefined> {
  const pending = yield* nextPending(request.runtime, request.now, daemon)
  if (pending === undefined) return undefined
  const { id } = pending
  const manifest = yield* existingManifest(id)
  const machineId =
    pending.wantsMachine ?? (yield* takePoolMachine(manifest, request, daemon)) ?? request.machineId
  const job = yield* startProvisioning(pending, { machineId, now: request.now, daemon })
  const machine = yield* insertMachine(daemon, {
    id: machineId,
    runtime: request.runtime,
    jobId: id,
    state: 'busy',
    details: {},
    createdAt: request.now,
    leaseUntil: null,
    attempts: 0,
    notBefore: 0,
    lastError: null,
  })
  return { job, manifest, machine }
}

export function* claimBatch(now: number, daemon: string): Work<Omit<Claimed, 'machine'> | undefined> {
  const pending = yield* nextPending(BATCH, now, daemon)
  if (pending === undefined) return undefined
  const manifest = yield* existingManifest(pending.id)
  return { manifest, job: yield* startProvisioning(pending, { machineId: null, now, daemon }) }
}

/** A job waits for the daemon that it was pinned to, and for the one that has its kept machine. */
function* nextPending(runtime: string, now: number, daemon: string): Work<Job | undefined> {
  const { row } = yield get(
    `select * from jobs
     where completed_at is null and state = 'pending' and runtime = ?1 and (not_before <= ?2 or not_before > ?2 + 300000)
       and (wants_daemon is null or wants_daemon = ?3)
       and (wants_machine is null or exists (
         select 1 from machines m where m.id = wants_machine and m.daemon = ?3 and m.state in ('kept', 'ready')))
       and not exists (select 1 from needs n where n.job_id = jobs.id)
     order by priority desc, seq limit 1 /*postgres for update skip locked */`,
    runtime,
    now,
    daemon,
  )
  return row && toJob(row)
}

/** The manifest is inserted and deleted with its job. */
function* existingManifest(id: string): Work<Manifest> {
  const manifest = yield* getManifest(id)
  if (manifest !== undefined) return manifest
  throw new AppError('internal', `Job ${id} has no manifest.`, { hint: 'deputy restore' })
}

function* startProvisioning(
  pending: Job,
  { machineId, now, daemon }: { machineId: string | null; now: number; daemon: string },
): Work<Job> {
  const change = { daemon, machineId, provisioningAt: now, attempts: pending.attempts + 1 }
  const data = { reason: 'a slot is free', ...(machineId !== null && { machine: machineId }) }
  yield* move(pending.id, 'provisioning', change, { at: now, data })
  return { ...pending, ...change, state: 'provisioning' }
}

/** Returns the oldest idle pool machine that fits the job. */
function* takePoolMachine(
  manifest: Manifest,
  request: ClaimRequest,
  daemon: string,
): Work<string | undefined> {
  const { rows: idle } = yield all(
    `select * from machines
     where runtime = ? and daemon = ? and state = 'ready' and job_id is null order by created_at`,
    request.runtime,
    daemon,
  )
  if (idle.length === 0) return undefined
  const kind = request.poolKind ? request.poolKind(manifest) : ''
  return idle.map(toMachine).find(machine => kind !== undefined && poolKindOf(machine) === kind)?.id
}

/**
 * Moves a job only if its current state allows it. Returns the job as it was before, or undefined when nothing changed.
 */
export function* move(
  id: string,
  to: JobState,
  change: JobChanges,
  event: EventBody,
  from?: readonly JobState[],
): Work<Pick<Job, 'state' | 'runtime' | 'priority'> | undefined> {
  const { row } = yield get('select state, runtime, priority from jobs where id = ?', id)
  if (row === undefined) return undefined
  const state = oneOf(STATES, row.state)
  if (!sourcesOf(to).includes(state) || from?.includes(state) === false) return undefined
  const { sql, values } = jobAssignments(change)
  const { changes } = yield run(
    `update jobs set state = ?${sql === '' ? '' : `, ${sql}`} where id = ? and state = ?`,
    to,
    ...values,
    id,
    state,
  )
  // Another daemon has moved the job since it was read.
  if (changes === 0) return undefined
  if (state === 'pending' && isTerminal(to)) yield* deleteNeeds(id)
  yield* insertEvent(id, { type: 'state', at: event.at, data: { from: state, to, ...event.data } })
  return { state, runtime: String(row.runtime), priority: Number(row.priority) }
}

/** Skips the event when the job no longer exists. */
export function* update(id: string, change: JobChanges, event?: NewEvent): Work<void> {
  const { sql, values } = jobAssignments(change)
  const exists =
    sql === ''
      ? (yield get('select 1 from jobs where id = ?', id)).row !== undefined
      : (yield run(`update jobs set ${sql} where id = ?`, ...values, id)).changes > 0
  if (exists && event !== undefined) yield* insertEvent(id, event)
}

/** Returns the deleted job and the blobs it referred to. */
export function* deleteJob(
  id: string,
): Work<{ job: Pick<Job, 'state' | 'runtime' | 'priority'>; blobs: string[] } | undefined> {
  const { row } = yield get('select seq, state, runtime, priority, labels from jobs where id = ?', id)
  if (row === undefined) return undefined
  const state = oneOf(STATES, row.state)
  if (!isTerminal(state)) return undefined
  for (const [name, value] of Object.entries(JSON.parse(String(row.labels)) as Record<string, string>))
    yield run('delete from labels where name = ? and value = ? and seq = ?', name, value, Number(row.seq))
  // An upload that came after the job had ended is only held.
  const { rows: blobs } = yield all(
    'select sha256 from artifacts where job_id = ?1 union select sha256 from blob_holds where holder = ?1',
    id,
  )
  yield run('delete from blob_holds where holder = ?', id)
  for (const table of ['output', 'events', 'artifacts', 'manifests', 'reviews'])
    yield run(`delete from ${table} where job_id = ?`, id)
  yield run(
    `delete from jobs where id = ? and state in (${TERMINAL_STATES.map(s => `'${s}'`).join(', ')})`,
    id,
  )
  const job = { state, runtime: String(row.runtime), priority: Number(row.priority) }
  return { job, blobs: blobs.map(blob => String(blob.sha256)) }
}
