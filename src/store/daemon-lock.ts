import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Database, isBusy, openDatabase } from './database.ts'

export interface Lock {
  release(): void
}

/** Of two that ask at the same moment, both would be refused if neither waited for the other to step back. */
const PATIENCE_MS = 250

/**
 * One daemon a home. Node has no flock, SQLite has: an open exclusive transaction on a file of its own is a
 * kernel lock that dies with the process, however that dies. Undefined when another process holds it.
 */
export const takeLock = (path: string): Lock | undefined => {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  let database: Database | undefined
  try {
    database = openDatabase(path, PATIENCE_MS)
    database.exec('begin exclusive')
  } catch (error) {
    database?.close()
    if (isBusy(error)) return undefined
    throw error
  }
  const held = database
  return {
    release: () => {
      // Closing alone lets go only when the driver's memory is collected.
      held.exec('rollback')
      held.close()
    },
  }
}
