import type { Database } from './database.ts'

/**
 * Group commit. Writes that arrive in the same turn of the event loop, or a moment later when many write at once,
 * share one transaction and one fsync, so that a durable write costs a fraction of a disk flush under load and one
 * flush when alone. Each write keeps its own fate: one that throws is undone and rejects alone; if the commit itself
 * fails, all of them reject and none has happened.
 *
 * What is lazy is safe from the death of this process at once, and from a power cut with the next write that is not.
 */
export interface Writer {
  /** A change may be made twice, the first time undone: what it does besides must bear that. */
  write<T>(change: (database: Database) => T, options?: { lazy?: boolean | undefined }): Promise<T>
  /** Resolves when everything queued so far is on disk. */
  flush(): Promise<void>
}

interface Queued {
  lazy: boolean
  change: (database: Database) => unknown
  resolve: (value: unknown) => void
  reject: (reason: unknown) => void
}

/** On a slow disk. A fast one is not waited for at all. */
const LONGEST_WAIT_MS = 5

export const createWriter = (database: Database): Writer => {
  let queue: Queued[] = []
  let scheduled: Promise<void> | undefined
  let hurry: (() => void) | undefined
  /** How many shared the last commit, and how long it took. */
  let last = { size: 1, ms: 0 }
  let sync: 'normal' | 'full' | undefined

  /** FULL flushes every commit: what was acknowledged survives a power cut, not only the death of this process. */
  const setSync = (wanted: 'normal' | 'full'): void => {
    if (wanted === sync) return
    database.get(`pragma synchronous = ${wanted}`)
    sync = wanted
  }

  const commitAll = (): void => {
    scheduled = undefined
    const batch = queue
    queue = []
    let settle: readonly (() => void)[]
    const began = performance.now()
    try {
      setSync(batch.every(item => item.lazy) ? 'normal' : 'full')
      database.run('begin immediate')
      settle = inOne(database, batch) ?? batch.map(item => alone(database, item))
      database.run('commit')
    } catch (error) {
      rollback(database)
      for (const item of batch) item.reject(error)
      return
    } finally {
      last = { size: batch.length, ms: performance.now() - began }
    }
    for (const done of settle) done()
  }

  /**
   * As many as shared the last commit are likely to come again, one shortly after the other: whoever was answered at
   * the same time asks at the same time. Without them the first would flush alone, and they right after it.
   */
  const gather = (commit: () => void, seen: number): void => {
    const wait = Math.min(LONGEST_WAIT_MS, last.ms / 8)
    const isAll = queue.length >= last.size
    if (!isAll && queue.length > seen) setImmediate(gather, commit, queue.length)
    else if (isAll || wait < 1) commit()
    else {
      const timer = setTimeout(() => {
        hurry = undefined
        commit()
      }, wait)
      hurry = () => {
        hurry = undefined
        clearTimeout(timer)
        setImmediate(commit)
      }
    }
  }

  const schedule = (): Promise<void> => {
    scheduled ??= new Promise<void>(resolve => {
      const commit = (): void => {
        commitAll()
        resolve()
      }
      setImmediate(gather, commit, 0)
    })
    return scheduled
  }

  return {
    write: (change, { lazy = false } = {}) =>
      new Promise((resolve, reject) => {
        queue.push({ lazy, change, resolve: resolve as (value: unknown) => void, reject })
        void schedule()
        if (queue.length >= last.size) hurry?.()
      }),
    flush: async () => {
      while (scheduled !== undefined) await scheduled
    },
  }
}

/** A write that throws is rare: a savepoint for each is paid for when one has, and then undefined is the answer. */
const inOne = (database: Database, batch: readonly Queued[]): (() => void)[] | undefined => {
  database.run('savepoint all_of_them')
  try {
    const values = batch.map(({ change }) => change(database))
    database.run('release all_of_them')
    return batch.map(
      ({ resolve }, index) =>
        () =>
          resolve(values[index]),
    )
  } catch (error) {
    undo(database, 'all_of_them', error)
    return undefined
  }
}

const alone = (database: Database, { change, resolve, reject }: Queued): (() => void) => {
  database.run('savepoint one')
  try {
    const value = change(database)
    database.run('release one')
    return () => resolve(value)
  } catch (error) {
    undo(database, 'one', error)
    return () => reject(error)
  }
}

/** After some errors, a full disk among them, SQLite has ended the whole transaction: then those are what is told. */
const undo = (database: Database, savepoint: string, error: unknown): void => {
  try {
    database.run(`rollback to ${savepoint}`)
    database.run(`release ${savepoint}`)
  } catch {
    throw error
  }
}

const rollback = (database: Database): void => {
  try {
    database.run('rollback')
  } catch {
    // SQLite has rolled back by itself (a full disk does that).
  }
}
