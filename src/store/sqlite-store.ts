import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Job, JobOutcome } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import { isTerminal, type JobState, STATES } from '../jobs/states.ts'
import type { Store } from '../ports.ts'
import { type Database, openDatabase } from './database.ts'
import { lastEvent, readEvents } from './events-table.ts'
import { createWriter } from './group-commit.ts'
import * as jobs from './jobs-table.ts'
import * as machines from './machines-table.ts'
import { migrate } from './migrations.ts'
import { appendOutput, readOutput } from './output-table.ts'
import { createQueueCounts } from './queue-counts.ts'
import {
  expiredJobs,
  holdBlob,
  insertBlobUse,
  isBlobUsed,
  releaseBlobs,
  releaseStaleBlobs,
} from './retention.ts'
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
  const counts = readCounts(database)
  const queue = createQueueCounts(database)
  const countMove = (from: JobState | undefined, to: JobState | undefined): void => {
    if (from !== undefined) counts[from] -= 1
    if (to !== undefined) counts[to] += 1
  }
  const countClaim = (job: Job | undefined): void => {
    if (job === undefined) return
    countMove('pending', job.state)
    queue.moved({ ...job, state: 'pending' }, job)
  }

  return {
    insertJob: job =>
      writer
        .write(db => {
          const inserted = jobs.insertJob(db, job)
          if (inserted.created) insertBlobUse(db, job.id, inputBlobs(job.manifest))
          releaseBlobs(db, job.id)
          return inserted
        })
        .then(inserted => {
          const { job: stored, created } = inserted
          if (created) {
            countMove(undefined, 'pending')
            queue.moved(undefined, stored)
          }
          return { ...inserted, position: created ? queue.positionOfNew(stored) : null }
        }),
    getJob: async id => jobs.getJob(database, id),
    getManifest: async id => jobs.getManifest(database, id),
    listJobs: async query => jobs.listJobs(database, query),
    activeJobs: async () => jobs.activeJobs(database),
    overdueJobs: async now => jobs.overdueJobs(database, now),
    strandedJobs: async () => jobs.strandedJobs(database),
    counts: () => ({ ...counts }),
    waiting: queue.waiting,
    queuePosition: async job => jobs.queuePosition(database, job),
    endedSince: async since => jobs.endedSince(database, since),
    oldestPending: async () => jobs.oldestPending(database),

    claim: async request => {
      const claimed = await writer.write(db => jobs.claim(db, request))
      countClaim(claimed?.job)
      return claimed
    },
    claimBatch: async now => {
      const claimed = await writer.write(db => jobs.claimBatch(db, now))
      countClaim(claimed)
      return claimed
    },
    move: async (id, to, change, event, { from, lazy } = {}) => {
      const work = (db: Database) => {
        const result = jobs.move(db, id, to, change, event, from)
        if (result !== undefined && change.result) insertBlobUse(db, id, outputBlobs(change.result))
        if (result !== undefined && (to === 'pending' || isTerminal(to))) releaseBlobs(db, id)
        return result
      }
      const before = await writer.write(work, { lazy })
      if (before === undefined) return false
      countMove(before.state, to)
      queue.moved(before, { ...before, runtime: change.runtime ?? before.runtime, state: to })
      return true
    },
    update: (id, change, event) => writer.write(db => jobs.update(db, id, change, event)),
    heartbeat: (id, at) =>
      writer.write(db => void db.run('update jobs set heartbeat_at = ? where id = ?', at, id), {
        lazy: true,
      }),

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
    deleteJob: id =>
      writer
        .write(db => {
          const deleted = jobs.deleteJob(db, id)
          return (
            deleted && { state: deleted.state, unused: deleted.blobs.filter(blob => !isBlobUsed(db, blob)) }
          )
        })
        .then(deleted => {
          countMove(deleted?.state, undefined)
          return deleted?.unused
        }),
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

const readCounts = (database: Database): Record<JobState, number> => {
  const counts = Object.fromEntries(STATES.map(state => [state, 0])) as Record<JobState, number>
  for (const { state, count } of jobs.countJobs(database)) counts[state] = count
  return counts
}

/**
 * Keeps the workspace while the job is pending. The path cannot clash with the path of an artifact, which is relative.
 */
const inputBlobs = (manifest: Manifest) =>
  manifest.workspace?.blob === undefined
    ? []
    : [{ path: '/workspace', sha256: manifest.workspace.blob, size: 0 }]

const outputBlobs = (result: JobOutcome) => [
  ...result.artifacts,
  ...(result.patch === null ? [] : [{ path: '/patch', ...result.patch }]),
]
