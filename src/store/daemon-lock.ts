import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Database, isBusy, openDatabase } from './database.ts'

export interface Lock {
  release(): void
}

/** Two processes that open the file at the same moment would both be refused if neither waited. */
const BUSY_TIMEOUT_MS = 250

/**
 * Ensures one daemon per home directory. Node has no flock, but SQLite does: an open exclusive transaction on a
 * separate file is a kernel lock that the kernel releases when the process dies. Returns undefined when another process
 * holds the lock.
 */
export const acquireLock = (path: string): Lock | undefined => {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  let database: Database | undefined
  try {
    database = openDatabase(path, BUSY_TIMEOUT_MS)
    database.exec('begin exclusive')
  } catch (error) {
    database?.close()
    if (isBusy(error)) return undefined
    throw error
  }
  const held = database
  return {
    release: () => {
      // Roll back first: closing alone releases the lock only when the driver is garbage-collected.
      held.exec('rollback')
      held.close()
    },
  }
}
