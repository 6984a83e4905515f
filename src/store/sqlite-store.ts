import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Store } from '../ports.ts'
import { type Database, openDatabase } from './database.ts'
import { lastEvent, readEvents } from './events-table.ts'
import { createWriter } from './group-commit.ts'
import { createJobStore } from './job-store.ts'
import * as jobs from './jobs-table.ts'
import * as machines from './machines-table.ts'
import { migrate } from './migrations.ts'
import { appendOutput, readOutput } from './output-table.ts'
import { expiredJobs, holdBlob, isBlobUsed, releaseStaleBlobs } from './retention.ts'
import { changeReview, getReview } from './reviews-table.ts'
import { measureMinute, readSamples, saveSample } from './samples-table.ts'

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
  return createStore(database)
}

const createStore = (database: Database): Store => {
  const writer = createWriter(database)
  return {
    ...createJobStore(database, writer),

    appendOutput: (id, batch, keep) => writer.write(db => appendOutput(db, id, batch, keep)),
    readOutput: async (id, from, maxBytes) => readOutput(database, id, from, maxBytes),

    events: async query => readEvents(database, query),
    lastEvent: async () => lastEvent(database),

    measureMinute: async at => measureMinute(database, at),
    saveSample: (sample, keepFrom) => writer.write(db => saveSample(db, sample, keepFrom), { lazy: true }),
    samples: async since => readSamples(database, since),

    getReview: async id => getReview(database, id),
    changeReview: (id, change, event) => writer.write(db => changeReview(db, id, change, event)),

    insertMachine: machine => writer.write(db => void machines.insertMachine(db, machine)),
    getMachine: async id => machines.getMachine(database, id),
    listMachines: async () => machines.listMachines(database),
    updateMachine: (id, change) => writer.write(db => machines.updateMachine(db, id, change)),
    condemnMachine: id => writer.write(db => machines.condemnMachine(db, id)),
    retireMachine: id => writer.write(db => machines.retireMachine(db, id)),
    forgetMachine: (id, report) => {
      const work = (db: Database): void => {
        if (report) jobs.update(db, report.jobId, { phases: report.phases }, report.event)
        machines.forgetMachine(db, id)
      }
      // After a power cut the record may be back; the machine is then found to be gone again.
      return writer.write(work, { lazy: true })
    },

    expiredJobs: async policy => expiredJobs(database, policy),
    compact: async () => {
      await writer.flush()
      database.all('pragma incremental_vacuum(2000)')
    },
    isBlobUsed: async sha256 => isBlobUsed(database, sha256),
    // Lazy, because a power cut that loses the hold also loses the write it protects.
    holdBlob: (sha256, holder) =>
      writer.write(db => holdBlob(db, sha256, holder, Date.now()), { lazy: true }),
    releaseStaleBlobs: before => writer.write(db => releaseStaleBlobs(db, before), { lazy: true }),

    knownTime: async () => {
      const row = database.get('select at from known_time')
      return row && Number(row.at)
    },
    saveKnownTime: at =>
      writer.write(
        db =>
          void db.run(
            'insert into known_time (id, at) values (1, ?) on conflict do update set at = excluded.at',
            Math.round(at),
          ),
        { lazy: true },
      ),

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
