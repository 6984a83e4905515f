export type Value = string | number | null | Uint8Array
/** May have extra columns: libsql adds a timing. */
export type Row = Record<string, unknown>

export interface Statement {
  readonly kind: 'run' | 'get' | 'all' | 'event'
  readonly sql: string
  readonly values: readonly Value[]
}

export interface Answer {
  /** The first row, for `get`. */
  readonly row: Row | undefined
  /** All rows, for `all`. */
  readonly rows: readonly Row[]
  /** How many rows were inserted, updated or deleted, for `run`. */
  readonly changes: number
}

/**
 * Work on the database: a generator that yields statements and receives their answers. SQLite runs it in one turn of
 * the event loop; PostgreSQL gets one statement after the other. Both run the same statements: functions that only
 * SQLite has are defined in `postgres-schema.ts`, and only PostgreSQL reads what follows `postgres` in a comment
 * such as `/*postgres for update *\/`.
 */
export type Work<T> = Generator<Statement, T, Answer>

export const run = (sql: string, ...values: Value[]): Statement => ({ kind: 'run', sql, values })
export const get = (sql: string, ...values: Value[]): Statement => ({ kind: 'get', sql, values })
/** Inserts an event. PostgreSQL does that at the end of the transaction, see `postgres-events.ts`. */
export const event = (...values: [jobId: string, at: number, type: string, data: string]): Statement => ({
  kind: 'event',
  sql: 'insert into events (job_id, at, type, data) values (?, ?, ?, ?)',
  values,
})
export const all = (sql: string, ...values: Value[]): Statement => ({ kind: 'all', sql, values })
