import { AppError } from '../jobs/errors.ts'
import { type Job, type JobError, type JobEvent, type JobOutcome, STATUS_MODES } from '../jobs/job.ts'
import { STATES } from '../jobs/states.ts'
import { MACHINE_STATES } from '../ports/machine.ts'
import type { JobChanges, MachineRecord } from '../ports.ts'
import type { Row, Value } from './sql.ts'

/** Converts database rows to records; the only place that does. */
export const toJob = (row: Row): Job => ({
  id: text(row.id),
  state: oneOf(STATES, row.state),
  title: text(row.title),
  agentType: text(row.agent_type),
  runtimeWanted: text(row.runtime_wanted),
  runtime: text(row.runtime),
  wantsMachine: maybeText(row.wants_machine),
  machineId: maybeText(row.machine_id),
  daemon: text(row.daemon),
  parentId: maybeText(row.parent_id),
  priority: Number(row.priority),
  statusMode: oneOf(STATUS_MODES, row.status_mode),
  labels: json<Record<string, string>>(row.labels) ?? {},
  origin: text(row.origin),
  createdAt: Number(row.created_at),
  provisioningAt: maybeNumber(row.provisioning_at),
  startedAt: maybeNumber(row.started_at),
  completedAt: maybeNumber(row.completed_at),
  timeoutSeconds: Number(row.timeout_seconds),
  attempts: Number(row.attempts),
  cancelRequestedAt: maybeNumber(row.cancel_requested_at),
  heartbeatAt: maybeNumber(row.heartbeat_at),
  progress: maybeText(row.progress),
  outputBytes: Number(row.output_bytes),
  position: Number(row.position),
  outputBase: Number(row.output_base),
  exitCode: maybeNumber(row.exit_code),
  signal: maybeText(row.signal),
  error: json<JobError>(row.error),
  result: json<JobOutcome>(row.result),
  phases: json<Record<string, number>>(row.phases) ?? {},
})

export const toEvent = (row: Row): JobEvent => ({
  seq: Number(row.seq),
  jobId: text(row.job_id),
  at: Number(row.at),
  type: text(row.type) as JobEvent['type'],
  data: json<Record<string, unknown>>(row.data) ?? {},
})

export const toMachine = (row: Row): MachineRecord => ({
  id: text(row.id),
  runtime: text(row.runtime),
  jobId: maybeText(row.job_id),
  state: oneOf(MACHINE_STATES, row.state),
  details: json<Record<string, unknown>>(row.details) ?? {},
  createdAt: Number(row.created_at),
  leaseUntil: maybeNumber(row.lease_until),
  attempts: Number(row.attempts),
  notBefore: Number(row.not_before),
  lastError: maybeText(row.last_error),
  daemon: text(row.daemon),
})

type Columns<T> = { readonly [K in keyof T]-?: readonly [column: string, encode: (value: unknown) => Value] }

const asIs = (value: unknown): Value => value as Value
const asJson = (value: unknown): Value => (value === null ? null : JSON.stringify(value))

const JOB_COLUMNS: Columns<Omit<JobChanges, 'phases'>> = {
  runtime: ['runtime', asIs],
  machineId: ['machine_id', asIs],
  daemon: ['daemon', asIs],
  provisioningAt: ['provisioning_at', asIs],
  startedAt: ['started_at', asIs],
  completedAt: ['completed_at', asIs],
  position: ['position', asIs],
  outputBase: ['output_base', asIs],
  attempts: ['attempts', asIs],
  cancelRequestedAt: ['cancel_requested_at', asIs],
  progress: ['progress', asIs],
  exitCode: ['exit_code', asIs],
  signal: ['signal', asIs],
  error: ['error', asJson],
  result: ['result', asJson],
  notBefore: ['not_before', asIs],
  queueUntil: ['queue_until', asIs],
}

const MACHINE_COLUMNS: Columns<Omit<MachineRecord, 'id' | 'runtime' | 'daemon'>> = {
  jobId: ['job_id', asIs],
  state: ['state', asIs],
  details: ['details', asJson],
  createdAt: ['created_at', asIs],
  leaseUntil: ['lease_until', asIs],
  attempts: ['attempts', asIs],
  notBefore: ['not_before', asIs],
  lastError: ['last_error', asIs],
}

export interface Assignments {
  /** `a = ?, b = ?`. Column names come from the tables above, never from a caller. */
  readonly sql: string
  readonly values: Value[]
}

export const jobAssignments = ({ phases, ...change }: JobChanges): Assignments => {
  const { sql, values } = assignments(change, JOB_COLUMNS)
  const parts = sql === '' ? [] : [sql]
  const add = (part: string, value: Value): void => {
    parts.push(part)
    values.push(value)
  }
  // A column of its own for the list of jobs by node.
  if (change.result?.executedOn) add('node = ?', change.result.executedOn.node)
  if (phases !== undefined) add('phases = json_patch(phases, ?)', JSON.stringify(phases))
  return { sql: parts.join(', '), values }
}

export const machineAssignments = (
  change: Partial<Omit<MachineRecord, 'id' | 'runtime' | 'daemon'>>,
): Assignments => assignments(change, MACHINE_COLUMNS)

const assignments = <T extends object>(change: T, columns: Columns<T>): Assignments => {
  const parts: string[] = []
  const values: Value[] = []
  for (const key of Object.keys(columns) as (keyof T)[]) {
    const value = change[key]
    if (value === undefined) continue
    const [column, encode] = columns[key]
    parts.push(`${column} = ?`)
    values.push(encode(value))
  }
  return { sql: parts.join(', '), values }
}

/** The column as one of its known values; any other means a damaged database. */
export const oneOf = <T extends string>(values: readonly T[], column: unknown): T => {
  const found = values.find(value => value === column)
  if (found !== undefined) return found
  throw new AppError('internal', `The database has the unknown value '${column}'.`, {
    hint: 'deputy restore',
  })
}

/** The type of a blob depends on the driver and the call: Buffer, Uint8Array or ArrayBuffer. */
export const bytesOf = (value: unknown): Uint8Array =>
  value instanceof ArrayBuffer
    ? new Uint8Array(value)
    : value instanceof Uint8Array
      ? value
      : new Uint8Array()

const text = (value: unknown): string => String(value)
const maybeText = (value: unknown): string | null =>
  value === null || value === undefined ? null : String(value)
const maybeNumber = (value: unknown): number | null =>
  value === null || value === undefined ? null : Number(value)
const json = <T>(value: unknown): T | null => (typeof value === 'string' ? (JSON.parse(value) as T) : null)
