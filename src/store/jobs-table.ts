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
import type { ClaimRequest, EventBody, JobChanges, JobQuery, NewEvent, NewJob } from '../ports.ts'
import type { Database, Value } from './database.ts'
import { insertEvent } from './events-table.ts'
import { insertMachine } from './machines-table.ts'
import { jobAssignments, oneOf, toJob, toMachine } from './rows.ts'

/** SQL statements on jobs. The caller holds the transaction for those that write. */

export const insertJob = (database: Database, job: NewJob): { job: Job; created: boolean } => {
  const { manifest } = job
  const key = manifest.idempotency_key ?? null
  if (key !== null) {
    const row = database.get('select * from jobs where idempotency_key = ?', key)
    if (row !== undefined) {
      if (row.manifest_hash !== job.manifestHash) throw keyConflict(key, String(row.id))
      return { job: toJob(row), created: false }
    }
  }
  const { lastId } = database.run(
    `insert into jobs (id, state, title, agent_type, runtime_wanted, runtime, wants_machine, parent_id, priority,
       status_mode, labels,
       origin, created_at, timeout_seconds, queue_until, idempotency_key, manifest_hash)
     values (?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
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
  )
  database.run('insert into manifests (job_id, body) values (?, ?)', job.id, JSON.stringify(manifest))
  for (const [name, value] of Object.entries(manifest.labels ?? {}))
    database.run('insert into labels (name, value, seq) values (?, ?, ?)', name, value, lastId)
  insertEvent(database, job.id, {
    type: 'submitted',
    at: job.createdAt,
    data: { by: job.origin, runtime: job.runtime },
  })
  return { job: getJob(database, job.id)!, created: true }
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

export const getJob = (database: Database, id: string): Job | undefined => {
  const row = database.get('select * from jobs where id = ?', id)
  return row && toJob(row)
}

export const getManifest = (database: Database, id: string): Manifest | undefined => {
  const row = database.get('select body from manifests where job_id = ?', id)
  return row && (JSON.parse(String(row.body)) as Manifest)
}

export const listJobs = (database: Database, query: JobQuery): Job[] => {
  const where: string[] = []
  const values: Value[] = []
  const add = (condition: string, ...more: Value[]): void => {
    where.push(condition)
    values.push(...more)
  }
  const { label } = query
  // A label with a value is an index range in list order, so the query starts there and needs no sort.
  const byLabel = label?.value !== undefined
  if (label?.value !== undefined) add('l.name = ? and l.value = ?', label.name, label.value)
  else if (label !== undefined) add('j.seq in (select seq from labels where name = ?)', label.name)
  if (query.status !== undefined) add('j.state = ?', query.status)
  if (query.parentId === null) add('j.parent_id is null')
  else if (query.parentId !== undefined) add('j.parent_id = ?', query.parentId)
  if (query.agent !== undefined) add('j.agent_type = ?', query.agent)
  if (query.origin !== undefined) add('substr(j.origin, 1, length(?)) = ?', query.origin, query.origin)
  if (query.node !== undefined) add(`json_extract(j.result, '$.executedOn.node') = ?`, query.node)
  if (query.since !== undefined) add('j.created_at >= ?', query.since)
  if (query.until !== undefined) add('j.created_at < ?', query.until)
  if (query.runtime !== undefined) add('j.runtime = ?', query.runtime)
  if (query.search !== undefined) {
    const { search } = query
    add(
      '(instr(lower(j.title), lower(?)) > 0 or substr(j.id, 1, length(?)) = lower(?))',
      search,
      search,
      search,
    )
  }
  const seq = byLabel ? 'l.seq' : 'j.seq'
  const order = ORDERS[query.sort ?? 'newest']
  if (query.before !== undefined) add(order.after(seq), query.before)
  const from = byLabel ? 'labels l cross join jobs j on j.seq = l.seq' : 'jobs j'
  const filter = where.length > 0 ? `where ${where.join(' and ')}` : ''
  return database
    .all(`select j.* from ${from} ${filter} order by ${order.by(seq)} limit ?`, ...values, query.limit)
    .map(toJob)
}

/** How long a job has run; one that never started comes last. */
const durationOf = (job: string): string =>
  `case when ${job}.started_at is null then -1
   else coalesce(${job}.completed_at, unixepoch() * 1000) - ${job}.started_at end`

/** Each order, and the condition for the jobs that follow a given one. */
const ORDERS = {
  newest: {
    by: (seq: string) => `${seq} desc`,
    after: (seq: string) => `${seq} < (select b.seq from jobs b where b.id = ?)`,
  },
  oldest: {
    by: (seq: string) => `${seq} asc`,
    after: (seq: string) => `${seq} > (select b.seq from jobs b where b.id = ?)`,
  },
  longest: {
    by: (seq: string) => `${durationOf('j')} desc, ${seq} desc`,
    after: (seq: string) =>
      `(${durationOf('j')}, ${seq}) < (select ${durationOf('b')}, b.seq from jobs b where b.id = ?)`,
  },
} as const

export const activeJobs = (database: Database): Job[] =>
  database
    .all(
      `select * from jobs where completed_at is null and state in ('provisioning', 'running') order by seq`,
    )
    .map(toJob)

export const overdueJobs = (database: Database, now: number): Job[] =>
  database
    .all(
      `select * from jobs
       where completed_at is null and state = 'pending' and queue_until is not null and queue_until <= ?
       order by queue_until limit 500`,
      now,
    )
    .map(toJob)

export const strandedJobs = (database: Database): Job[] =>
  database
    .all(
      `select * from jobs
       where completed_at is null and state = 'pending' and wants_machine is not null
         and not exists (select 1 from machines m where m.id = wants_machine and m.state <> 'destroying')`,
    )
    .map(toJob)

export const countJobs = (database: Database): { state: JobState; count: number }[] =>
  database
    .all('select state, count(*) as count from jobs group by state')
    .map(row => ({ state: oneOf(STATES, row.state), count: Number(row.count) }))

export const endedSince = (database: Database, since: number): Record<TerminalState, number> => {
  const counts = { success: 0, failed: 0, timeout: 0, cancelled: 0 }
  for (const row of database.all(
    'select state, count(*) as count from jobs where completed_at >= ? group by state',
    since,
  ))
    counts[oneOf(TERMINAL_STATES, row.state)] = Number(row.count)
  return counts
}

export const queuePosition = (database: Database, job: Job): number => {
  const row = database.get(
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

export const oldestPending = (database: Database): number | null => {
  const row = database.get(
    `select min(created_at) as at from jobs where completed_at is null and state = 'pending'`,
  )
  return row?.at === null || row?.at === undefined ? null : Number(row.at)
}

/** Writes the machine record with the claim, so that a machine is recorded before it is created. */
export const claim = (database: Database, request: ClaimRequest) => {
  const pending = nextPending(database, request.runtime, request.now)
  if (pending === undefined) return undefined
  const { id } = pending
  const machineId = pending.wantsMachine ?? takePoolMachine(database, id, request) ?? request.machineId
  const job = startProvisioning(database, pending, { machineId, now: request.now })
  const machine = insertMachine(database, {
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
  return { job, machine }
}

export const claimBatch = (database: Database, now: number): Job | undefined => {
  const pending = nextPending(database, BATCH, now)
  return pending && startProvisioning(database, pending, { machineId: null, now })
}

const nextPending = (database: Database, runtime: string, now: number): Job | undefined => {
  const row = database.get(
    `select * from jobs
     where completed_at is null and state = 'pending' and runtime = ?1 and (not_before <= ?2 or not_before > ?2 + 300000)
       and (wants_machine is null or exists (select 1 from machines m where m.id = wants_machine and m.state in ('kept', 'ready')))
     order by priority desc, seq limit 1`,
    runtime,
    now,
  )
  return row && toJob(row)
}

const startProvisioning = (
  database: Database,
  pending: Job,
  { machineId, now }: { machineId: string | null; now: number },
): Job => {
  const change = { machineId, provisioningAt: now, attempts: pending.attempts + 1 }
  const data = { reason: 'a slot is free', ...(machineId !== null && { machine: machineId }) }
  move(database, pending.id, 'provisioning', change, { at: now, data })
  return { ...pending, ...change, state: 'provisioning' }
}

/** Returns the oldest idle pool machine that fits the job. */
const takePoolMachine = (database: Database, jobId: string, request: ClaimRequest): string | undefined => {
  const idle = database.all(
    `select * from machines where runtime = ? and state = 'ready' and job_id is null order by created_at`,
    request.runtime,
  )
  if (idle.length === 0) return undefined
  const manifest = getManifest(database, jobId)
  const kind = request.poolKind && manifest ? request.poolKind(manifest) : ''
  return idle.map(toMachine).find(machine => kind !== undefined && poolKindOf(machine) === kind)?.id
}

/**
 * Moves a job only if its current state allows it. Returns the job as it was before, or undefined when nothing changed.
 */
export const move = (
  database: Database,
  id: string,
  to: JobState,
  change: JobChanges,
  event: EventBody,
  from?: readonly JobState[],
): Pick<Job, 'state' | 'runtime' | 'priority'> | undefined => {
  const row = database.get('select state, runtime, priority from jobs where id = ?', id)
  if (row === undefined) return undefined
  const state = oneOf(STATES, row.state)
  if (!sourcesOf(to).includes(state) || from?.includes(state) === false) return undefined
  const { sql, values } = jobAssignments(change)
  database.run(
    `update jobs set state = ?${sql === '' ? '' : `, ${sql}`} where id = ? and state = ?`,
    to,
    ...values,
    id,
    state,
  )
  insertEvent(database, id, { type: 'state', at: event.at, data: { from: state, to, ...event.data } })
  return { state, runtime: String(row.runtime), priority: Number(row.priority) }
}

/** Skips the event when the job no longer exists. */
export const update = (database: Database, id: string, change: JobChanges, event?: NewEvent): void => {
  const { sql, values } = jobAssignments(change)
  const exists =
    sql === ''
      ? database.get('select 1 from jobs where id = ?', id) !== undefined
      : database.run(`update jobs set ${sql} where id = ?`, ...values, id).changes > 0
  if (exists && event !== undefined) insertEvent(database, id, event)
}

/** Returns the state of the deleted job and the blobs it referred to. */
export const deleteJob = (
  database: Database,
  id: string,
): { state: JobState; blobs: string[] } | undefined => {
  const row = database.get('select seq, state, labels from jobs where id = ?', id)
  if (row === undefined) return undefined
  const state = oneOf(STATES, row.state)
  if (!isTerminal(state)) return undefined
  for (const [name, value] of Object.entries(JSON.parse(String(row.labels)) as Record<string, string>))
    database.run('delete from labels where name = ? and value = ? and seq = ?', name, value, Number(row.seq))
  // An upload that came after the job had ended is only held.
  const blobs = database
    .all(
      'select sha256 from artifacts where job_id = ?1 union select sha256 from blob_holds where holder = ?1',
      id,
    )
    .map(row => String(row.sha256))
  database.run('delete from blob_holds where holder = ?', id)
  for (const table of ['output', 'events', 'artifacts', 'manifests', 'reviews'])
    database.run(`delete from ${table} where job_id = ?`, id)
  database.run(
    `delete from jobs where id = ? and state in (${TERMINAL_STATES.map(s => `'${s}'`).join(', ')})`,
    id,
  )
  return { state, blobs }
}
