import { createRequire } from 'node:module'
import { AppError } from '../jobs/errors.ts'
import type { Answer, Row, Statement as SqlStatement, Value, Work } from './sql.ts'

/** The calls that the store makes. Implemented by libsql, or by node:sqlite where libsql has no binary. */
export interface Database {
  exec(sql: string): void
  /** Returns the number of changed rows. */
  run(sql: string, ...values: Value[]): number
  get(sql: string, ...values: Value[]): Row | undefined
  all(sql: string, ...values: Value[]): Row[]
  close(): void
}

interface Statement {
  run(...values: Value[]): { changes: number | bigint }
  get(...values: Value[]): unknown
  all(...values: Value[]): unknown[]
}

interface Driver {
  exec(sql: string): unknown
  prepare(sql: string): Statement
  close(): unknown
}

/** Waits for a writer in another process (a backup, an sqlite3 shell) before it fails. */
export const openDatabase = (path: string, busyMs = 5000): Database => {
  const driver = openDriver(path)
  try {
    driver.exec(`pragma busy_timeout = ${busyMs}`)
    driver.prepare('select count(*) from sqlite_schema').get()
  } catch (error) {
    driver.close()
    throw ['SQLITE_NOTADB', 'SQLITE_CORRUPT'].includes(codeOf(error))
      ? damaged(path, error instanceof Error ? error.message : String(error), error)
      : databaseError(error)
  }
  return wrap(driver)
}

const openDriver = (path: string): Driver => {
  const require = createRequire(import.meta.url)
  let reason: unknown
  for (const open of [
    (): Driver => new (require('libsql') as new (file: string) => Driver)(path),
    (): Driver =>
      new (require('node:sqlite') as { DatabaseSync: new (file: string) => Driver }).DatabaseSync(path),
  ]) {
    try {
      return open()
    } catch (error) {
      if (!isMissingModule(error)) throw databaseError(error)
      reason ??= error
    }
  }
  throw new AppError(
    'unavailable',
    `No SQLite driver for ${process.platform}-${process.arch} on Node ${process.version}.`,
    {
      hint: 'Install with optional dependencies (npm install --include=optional), or use Node 22.13 or newer.',
      cause: reason,
      retryable: false,
    },
  )
}

const wrap = (driver: Driver): Database => {
  const statements = new Map<string, Statement>()
  const prepare = (sql: string): Statement => {
    let statement = statements.get(sql)
    if (statement === undefined) {
      statement = driver.prepare(sql)
      statements.set(sql, statement)
    }
    return statement
  }
  return {
    exec: sql => guarded(() => void driver.exec(sql)),
    run: (sql, ...values) => guarded(() => Number(prepare(sql).run(...values).changes)),
    get: (sql, ...values) => guarded(() => prepare(sql).get(...values) as Row | undefined),
    all: (sql, ...values) => guarded(() => prepare(sql).all(...values) as Row[]),
    close: () => {
      statements.clear()
      driver.close()
    },
  }
}

/** Runs all statements of the work before anything else can use the database. */
export const perform = <T>(database: Database, work: Work<T>): T => {
  let step = work.next()
  while (step.done !== true) step = work.next(answer(database, step.value))
  return step.value
}

const NO_ROWS: readonly Row[] = []

const answer = (database: Database, { kind, sql, values }: SqlStatement): Answer => {
  switch (kind) {
    case 'run':
    case 'event':
      return { row: undefined, rows: NO_ROWS, changes: database.run(sql, ...values) }
    case 'get':
      return { row: database.get(sql, ...values), rows: NO_ROWS, changes: 0 }
    case 'all':
      return { row: undefined, rows: database.all(sql, ...values), changes: 0 }
  }
}

const guarded = <T>(call: () => T): T => {
  try {
    return call()
  } catch (error) {
    throw databaseError(error)
  }
}

const codeOf = (error: unknown): string => String((error as { code?: unknown }).code ?? '')

const isMissingModule = (error: unknown): boolean =>
  ['MODULE_NOT_FOUND', 'ERR_UNKNOWN_BUILTIN_MODULE', 'ERR_DLOPEN_FAILED'].includes(codeOf(error))

export const isBusy = (error: unknown): boolean =>
  error instanceof AppError && (error.details as { sqlite?: string } | undefined)?.sqlite === 'SQLITE_BUSY'

/** Converts SQLite errors. Disk and lock problems may pass, so they are retryable; all others are defects. */
const databaseError = (error: unknown): AppError => {
  if (error instanceof AppError) return error
  const message = error instanceof Error ? error.message : String(error)
  const sqlite = /locked/.test(message) ? 'SQLITE_BUSY' : codeOf(error)
  if (sqlite.startsWith('SQLITE_FULL') || sqlite.startsWith('SQLITE_IOERR') || /disk is full/.test(message))
    return new AppError('unavailable', `Cannot write to the database: ${message}.`, {
      hint: 'Free disk space below the state directory (deputy daemon status shows its path). Stored data is safe.',
      details: { sqlite, isDiskFull: true },
      cause: error,
    })
  if (sqlite === 'SQLITE_BUSY')
    return new AppError('unavailable', 'The database is locked by another process.', {
      details: { sqlite },
      cause: error,
    })
  return new AppError('internal', `The database refused a statement: ${message}.`, {
    details: { sqlite },
    cause: error,
  })
}

/** A damaged database is never opened for writing, so that the damage does not grow. */
export const damaged = (path: string, why: string, cause?: unknown): AppError =>
  new AppError('unavailable', `${path} is damaged or not a Deputy database: ${why.replace(/\.$/, '')}.`, {
    hint: `Nothing was changed. Restore a backup: deputy restore FILE. Or start empty: mv '${path}' '${path}.damaged'`,
    retryable: false,
    cause,
  })
