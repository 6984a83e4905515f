import type { Client, Pool, QueryConfig } from 'pg'
import { AppError } from '../jobs/errors.ts'
import type { Answer, Statement, Value, Work } from './sql.ts'

/**
 * The server cannot be reached, has ended the connection, or has ended the transaction because of a deadlock with
 * another daemon. Nothing is known about a commit under way.
 */
export class ConnectionLost extends Error {}

type Connection = Pick<Client | Pool, 'query'>

/** Runs the statements of the work one after the other, except events, which it adds to the list. */
export const performOn = async <T>(
  connection: Connection,
  work: Work<T>,
  events: Statement[] = [],
): Promise<T> => {
  let step = work.next()
  while (step.done !== true)
    if (step.value.kind === 'event') {
      events.push(step.value)
      step = work.next(NOTHING)
    } else step = work.next(await answer(connection, step.value))
  return step.value
}

const NOTHING: Answer = { row: undefined, rows: [], changes: 0 }

const answer = async (connection: Connection, { sql, values }: Statement): Promise<Answer> => {
  const { rows, rowCount } = await guarded(() =>
    connection.query<Record<string, unknown>>({ ...prepared(sql), values: values.map(encode) }),
  )
  return { row: rows[0], rows, changes: rowCount ?? 0 }
}

/** Runs statements without values, and returns the result of each. */
export const runScript = async (
  client: Client,
  sql: string,
): Promise<readonly { command: string; rowCount: number | null; rows: Record<string, unknown>[] }[]> => {
  const result = await guarded(() => client.query<Record<string, unknown>>(sql))
  return Array.isArray(result) ? result : [result]
}

const statements = new Map<string, Pick<QueryConfig, 'name' | 'text'>>()

/** Numbers the placeholders. A name makes the server keep the plan of the statement for the connection. */
const prepared = (sql: string): Pick<QueryConfig, 'name' | 'text'> & { text: string } => {
  const known = statements.get(sql)
  if (known?.text !== undefined) return { ...known, text: known.text }
  let next = 0
  const text = sql
    .replace(/\/\*postgres (.*?)\*\//g, '$1')
    .replace(/\?(\d*)/g, (_, number: string) => `$${number === '' ? ++next : number}`)
  const statement = { name: `deputy_${statements.size}`, text }
  statements.set(sql, statement)
  return statement
}

/** PostgreSQL has no NUL in texts. */
const encode = (value: Value): Value =>
  typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\uFFFD') : value

const guarded = async <T>(call: () => Promise<T>): Promise<T> => {
  try {
    return await call()
  } catch (error) {
    throw toStoreError(error)
  }
}

const DEADLOCK = '40P01'

/** Codes of the class "insufficient resources", such as a full disk: the statement may succeed later. */
const RESOURCES = '53'

export const toStoreError = (error: unknown): Error => {
  if (error instanceof AppError || error instanceof ConnectionLost) return error
  const { severity, code } = error as { severity?: string; code?: string }
  const message = error instanceof Error ? error.message : String(error)
  if (severity === undefined || severity === 'FATAL' || severity === 'PANIC' || code === DEADLOCK)
    return new ConnectionLost(message || code, { cause: error })
  if (code?.startsWith(RESOURCES))
    return new AppError('unavailable', `PostgreSQL cannot write: ${message}.`, {
      hint: 'Check the disk and the limits of the database server. Stored data is safe.',
      cause: error,
    })
  return new AppError('internal', `PostgreSQL refused a statement: ${message}.`, { cause: error })
}

export const unreachable = (label: string, error: Error): AppError =>
  new AppError('unavailable', `Cannot reach ${label}: ${error.message}.`, {
    hint: 'Check that the database server runs and accepts the address, user and password of the setting store.',
    cause: error,
  })
