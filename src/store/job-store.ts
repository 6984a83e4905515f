import type { Job, JobOutcome } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import { isTerminal, type JobState } from '../jobs/states.ts'
import type { MoveOptions, Store } from '../ports/store.ts'
import type { StoreDatabase } from './create-store.ts'
import * as jobs from './jobs-table.ts'
import { listJobs } from './list-jobs.ts'
import { type QueueCounts, readQueueCounts } from './queue-counts.ts'
import { insertBlobUse, isBlobUsed, releaseBlobs } from './retention.ts'
import { run, type Work } from './sql.ts'

/** Numbers of jobs by state, and of pending jobs by provider. Only one daemon writes, so they stay in its memory. */
export interface StoredCounts {
  readonly states: Record<JobState, number>
  readonly queue: QueueCounts
}

export function* readCounts(): Work<StoredCounts> {
  return { states: yield* jobs.countJobs(), queue: yield* readQueueCounts() }
}

/** Jobs and their queue. */
export const createJobStore = (
  { read, write }: Pick<StoreDatabase, 'read' | 'write'>,
  { states, queue }: StoredCounts,
) => {
  const countMove = (from: JobState | undefined, to: JobState | undefined): void => {
    if (from !== undefined) states[from] -= 1
    if (to !== undefined) states[to] += 1
  }
  const countClaim = (job: Job | undefined): void => {
    if (job === undefined) return
    countMove('pending', job.state)
    queue.moved({ ...job, state: 'pending' }, job)
  }

  return {
    insertJob: async job => {
      function* work() {
        const inserted = yield* jobs.insertJob(job)
        if (inserted.created) yield* insertBlobUse(job.id, inputBlobs(job.manifest))
        yield* releaseBlobs(job.id)
        return inserted
      }
      const inserted = await write(work)
      if (!inserted.created) return { ...inserted, position: null }
      countMove(undefined, 'pending')
      queue.moved(undefined, inserted.job)
      return { ...inserted, position: queue.positionOfNew(inserted.job) }
    },
    getJob: id => read(() => jobs.getJob(id)),
    getManifest: id => read(() => jobs.getManifest(id)),
    listJobs: query => read(() => listJobs(query)),
    activeJobs: () => read(jobs.activeJobs),
    overdueJobs: now => read(() => jobs.overdueJobs(now)),
    strandedJobs: () => read(jobs.strandedJobs),
    counts: async () => ({ ...states }),
    waiting: async runtime => queue.waiting(runtime),
    queuePosition: job => read(() => jobs.queuePosition(job)),
    endedSince: since => read(() => jobs.endedSince(since)),
    oldestPending: () => read(jobs.oldestPending),

    claim: async request => {
      const claimed = await write(() => jobs.claim(request))
      countClaim(claimed?.job)
      return claimed
    },
    claimBatch: async now => {
      const claimed = await write(() => jobs.claimBatch(now))
      countClaim(claimed?.job)
      return claimed
    },
    move: async (id, to, change, event, { from, lazy }: MoveOptions = {}) => {
      function* work() {
        const before = yield* jobs.move(id, to, change, event, from)
        if (before !== undefined && change.result) yield* insertBlobUse(id, outputBlobs(change.result))
        if (before !== undefined && (to === 'pending' || isTerminal(to))) yield* releaseBlobs(id)
        return before
      }
      const before = await write(work, { lazy })
      if (before === undefined) return false
      countMove(before.state, to)
      queue.moved(before, { ...before, runtime: change.runtime ?? before.runtime, state: to })
      return true
    },
    update: (id, change, event) => write(() => jobs.update(id, change, event)),
    heartbeat: (id, at) => write(() => heartbeat(id, at), { lazy: true }),
    deleteJob: async id => {
      function* work() {
        const deleted = yield* jobs.deleteJob(id)
        if (deleted === undefined) return undefined
        const unused: string[] = []
        for (const blob of deleted.blobs) if (!(yield* isBlobUsed(blob))) unused.push(blob)
        return { state: deleted.state, unused }
      }
      const deleted = await write(work)
      countMove(deleted?.state, undefined)
      return deleted?.unused
    },
  } satisfies Partial<Store>
}

function* heartbeat(id: string, at: number): Work<void> {
  yield run('update jobs set heartbeat_at = ? where id = ?', at, id)
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
