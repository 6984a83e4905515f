import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Store } from '../ports.ts'
import { createStore, type StoreDatabase } from './create-store.ts'
import { type Database, openDatabase, perform } from './database.ts'
import { createWriter } from './group-commit.ts'
import { readMemoryCounts } from './job-counts.ts'
import { migrate } from './migrations.ts'

/** Opens the database and creates or upgrades it. The daemon lock guarantees that only one process does so. */
export const openStore = (path: string): Store => {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const database = openDatabase(path)
  for (const pragma of [
    'auto_vacuum = incremental',
    'journal_mode = wal',
    'cache_size = -4000',
    'mmap_size = 0',
  ])
    database.get(`pragma ${pragma}`)
  migrate(database, path)
  return createStore(storeDatabase(database), { daemon: '', counts: perform(database, readMemoryCounts()) })
}

const storeDatabase = (database: Database): StoreDatabase => {
  const writer = createWriter(database)
  return {
    read: async work => perform(database, work()),
    write: (work, options) => writer.write(db => perform(db, work()), options),
    compact: async () => {
      await writer.flush()
      database.all('pragma incremental_vacuum(2000)')
    },
    flush: () => writer.flush(),
    close: async () => {
      await writer.flush()
      checkpoint(database)
      database.close()
    },
  }
}

/** Writes the log back, so that the database is one complete file that can be copied. */
const checkpoint = (database: Database): void => {
  try {
    database.get('pragma wal_checkpoint(truncate)')
  } catch {
    // On a full disk, or while another process reads, the log stays and the next daemon uses it.
  }
}
