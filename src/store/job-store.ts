import type { Job, JobOutcome } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import { isTerminal, type JobState, STATES } from '../jobs/states.ts'
import type { MoveOptions, Store } from '../ports/store.ts'
import type { Database } from './database.ts'
import type { Writer } from './group-commit.ts'
import * as jobs from './jobs-table.ts'
import { createQueueCounts } from './queue-counts.ts'
import { insertBlobUse, isBlobUsed, releaseBlobs } from './retention.ts'

/** Jobs and their queue. The numbers of jobs by state are kept in memory, so that no query has to count. */
export const createJobStore = (database: Database, writer: Writer) => {
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
    move: async (id, to, change, event, { from, lazy }: MoveOptions = {}) => {
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
  } satisfies Partial<Store>
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
