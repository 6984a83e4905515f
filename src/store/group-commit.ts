import type { Database } from './database.ts'

/**
 * Group commit. Writes of the same turn of the event loop, or of the next milliseconds under load, share one
 * transaction and one fsync. A durable write costs one flush when it is alone and a fraction of a flush under load.
 * Each write succeeds or fails on its own: a write that throws is rolled back and rejected alone. If the commit fails,
 * all writes are rejected and none is stored.
 *
 * A lazy write survives the death of the process at once, and a power cut after the next write that is not lazy.
 */
export interface Writer {
  /** `change` may run twice, the first run rolled back: its other side effects must tolerate that. */
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

/** Longest wait for more writes before a commit. Only slow disks reach it: the wait is an eighth of the last commit. */
const MAX_WAIT_MS = 5

export const createWriter = (database: Database): Writer => {
  let queue: Queued[] = []
  let scheduled: Promise<void> | undefined
  let commitNow: (() => void) | undefined
  /** Size and duration of the last commit. */
  let lastCommit = { size: 1, ms: 0 }
  let sync: 'normal' | 'full' | undefined

  /**
   * FULL flushes every commit, so acknowledged writes survive a power cut. NORMAL writes survive only the death of the
   * process.
   */
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
      settle = runTogether(database, batch) ?? batch.map(item => runAlone(database, item))
      database.run('commit')
    } catch (error) {
      rollback(database)
      for (const item of batch) item.reject(error)
      return
    } finally {
      lastCommit = { size: batch.length, ms: performance.now() - began }
    }
    for (const done of settle) done()
  }

  /**
   * Clients that were answered by the same commit tend to write again at the same time, one shortly after the other.
   * Wait for as many writes as the last commit had; otherwise the first one would be flushed alone and the rest right
   * after it.
   */
  const waitForMore = (commit: () => void, previousLength: number): void => {
    const wait = Math.min(MAX_WAIT_MS, lastCommit.ms / 8)
    const isAll = queue.length >= lastCommit.size
    if (!isAll && queue.length > previousLength) setImmediate(waitForMore, commit, queue.length)
    else if (isAll || wait < 1) commit()
    else {
      const timer = setTimeout(() => {
        commitNow = undefined
        commit()
      }, wait)
      commitNow = () => {
        commitNow = undefined
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
      setImmediate(waitForMore, commit, 0)
    })
    return scheduled
  }

  return {
    write: (change, { lazy = false } = {}) =>
      new Promise((resolve, reject) => {
        queue.push({ lazy, change, resolve: resolve as (value: unknown) => void, reject })
        void schedule()
        if (queue.length >= lastCommit.size) commitNow?.()
      }),
    flush: async () => {
      while (scheduled !== undefined) await scheduled
    },
  }
}

/**
 * Runs the batch under one savepoint. Returns undefined when a write throws, which is rare: then each write runs under
 * a savepoint of its own.
 */
const runTogether = (database: Database, batch: readonly Queued[]): (() => void)[] | undefined => {
  database.run('savepoint whole_batch')
  try {
    const values = batch.map(({ change }) => change(database))
    database.run('release whole_batch')
    return batch.map(
      ({ resolve }, index) =>
        () =>
          resolve(values[index]),
    )
  } catch (error) {
    undo(database, 'whole_batch', error)
    return undefined
  }
}

const runAlone = (database: Database, { change, resolve, reject }: Queued): (() => void) => {
  database.run('savepoint single_write')
  try {
    const value = change(database)
    database.run('release single_write')
    return () => resolve(value)
  } catch (error) {
    undo(database, 'single_write', error)
    return () => reject(error)
  }
}

/**
 * Some errors, such as a full disk, make SQLite end the whole transaction. Then the rollback fails, and the original
 * error is thrown.
 */
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
    // SQLite has already rolled back, for example on a full disk.
  }
}
