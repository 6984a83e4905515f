import type { Job, JobOutcome } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import { isTerminal } from '../jobs/states.ts'
import type { MoveOptions, Store } from '../ports/store.ts'
import type { StoreDatabase, StoreIdentity } from './create-store.ts'
import * as jobs from './jobs-table.ts'
import { listJobs } from './list-jobs.ts'
import { insertBlobUse, isBlobUsed, releaseBlobs } from './retention.ts'
import { run, type Work } from './sql.ts'

/** Jobs and their queue. */
export const createJobStore = (
  { read, write }: Pick<StoreDatabase, 'read' | 'write'>,
  { counts, daemon, mayClaim }: StoreIdentity,
) => {
  const countClaim = (job: Job | undefined): void => {
    if (job !== undefined) counts.moved({ ...job, state: 'pending' }, job)
  }

  function* claimWith<T>(claim: () => Work<T | undefined>): Work<T | undefined> {
    return mayClaim === undefined || (yield* mayClaim()) ? yield* claim() : undefined
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
      counts.moved(undefined, inserted.job)
      return { ...inserted, position: await counts.positionOfNew(inserted.job) }
    },
    getJob: id => read(() => jobs.getJob(id)),
    getManifest: id => read(() => jobs.getManifest(id)),
    listJobs: query => read(() => listJobs(query)),
    activeJobs: () => read(() => jobs.activeJobs(daemon)),
    overdueJobs: now => read(() => jobs.overdueJobs(now)),
    strandedJobs: () => read(jobs.strandedJobs),
    counts: () => counts.states(),
    pending: () => counts.pending(),
    hasPending: runtime => counts.hasPending(runtime),
    queuePosition: job => read(() => jobs.queuePosition(job)),
    endedSince: since => read(() => jobs.endedSince(since)),
    oldestPending: () => read(jobs.oldestPending),

    claim: async request => {
      const claimed = await write(() => claimWith(() => jobs.claim(request, daemon)))
      countClaim(claimed?.job)
      return claimed
    },
    claimBatch: async now => {
      const claimed = await write(() => claimWith(() => jobs.claimBatch(now, daemon)))
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
      counts.moved(before, { ...before, runtime: change.runtime ?? before.runtime, state: to })
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
        return { job: deleted.job, unused }
      }
      const deleted = await write(work)
      if (deleted !== undefined) counts.moved(deleted.job, undefined)
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
