import type { Database } from './database.ts'

/**
 * Group commit. Writes that arrive in the same turn of the event loop share one transaction and one fsync, so
 * that a durable write costs a fraction of a disk flush under load and one flush when alone. Each write keeps
 * its own fate: one that throws is rolled back to its savepoint and rejects alone; if the commit itself fails,
 * all of them reject and none has happened.
 */
export interface Writer {
  write<T>(change: (database: Database) => T): Promise<T>
  /** Resolves when everything queued so far is on disk. */
  flush(): Promise<void>
}

interface Queued {
  change: (database: Database) => unknown
  resolve: (value: unknown) => void
  reject: (reason: unknown) => void
}

export const createWriter = (database: Database): Writer => {
  let queue: Queued[] = []
  let scheduled: Promise<void> | undefined

  const commitAll = (): void => {
    scheduled = undefined
    const batch = queue
    queue = []
    const settle: (() => void)[] = []
    try {
      database.run('begin immediate')
      for (const item of batch) settle.push(attempt(database, item, batch.length > 1))
      database.run('commit')
    } catch (error) {
      rollback(database)
      for (const item of batch) item.reject(error)
      return
    }
    for (const done of settle) done()
  }

  const schedule = (): Promise<void> => {
    scheduled ??= new Promise<void>(resolve => {
      setImmediate(() => {
        commitAll()
        resolve()
      })
    })
    return scheduled
  }

  return {
    write: change =>
      new Promise((resolve, reject) => {
        queue.push({ change, resolve: resolve as (value: unknown) => void, reject })
        void schedule()
      }),
    flush: async () => {
      while (scheduled !== undefined) await scheduled
    },
  }
}

const attempt = (database: Database, item: Queued, shared: boolean): (() => void) => {
  if (!shared) {
    const value = item.change(database)
    return () => item.resolve(value)
  }
  database.run('savepoint one')
  try {
    const value = item.change(database)
    database.run('release one')
    return () => item.resolve(value)
  } catch (error) {
    database.run('rollback to one')
    database.run('release one')
    return () => item.reject(error)
  }
}

const rollback = (database: Database): void => {
  try {
    database.run('rollback')
  } catch {
    // SQLite has rolled back by itself (a full disk does that).
  }
}
