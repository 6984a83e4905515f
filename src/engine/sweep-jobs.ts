import { parseSize } from '../jobs/sizes.ts'
import type { EngineContext } from './engine-context.ts'
import type { KnownTime } from './known-time.ts'

/** How long an upload is kept without a job that uses it. */
const UPLOAD_TTL_MS = 3_600_000
const DAY_MS = 86_400_000
/** Jobs deleted in one transaction; more would delay other writes. */
const DELETE_BATCH = 50

/** Fails jobs whose queue timeout has passed or whose kept machine is gone, and deletes expired jobs and blobs. */
export const createJobSweep = (context: EngineContext, time: KnownTime) => {
  const { store, clock, config, log } = context

  const failStranded = async (): Promise<void> => {
    for (const job of await store.strandedJobs()) {
      const message = `Machine '${job.wantsMachine}', which the job was to run in, no longer exists.`
      const at = clock.now()
      await store.move(
        job.id,
        'failed',
        { completedAt: at, error: { code: 'machine', message } },
        { at, data: { reason: message } },
      )
      context.changes.emit({ jobId: job.id, kind: 'state' })
    }
  }

  const failOverdue = async (): Promise<void> => {
    const now = clock.now()
    for (const job of await store.overdueJobs(time.now())) {
      const { queueTimeout = config.defaults.queueTimeout } = (await store.getManifest(job.id)) ?? {}
      const message = `The job did not start within ${queueTimeout} s${job.progress === null ? '.' : ` (${job.progress}).`}`
      await store.move(
        job.id,
        'failed',
        { completedAt: now, error: { code: 'machine', message, hint: "Set a longer 'queueTimeout'." } },
        { at: now, data: { reason: message } },
        { from: ['pending'] },
      )
      context.changes.emit({ jobId: job.id, kind: 'state' })
    }
  }

  const sweepJobs = async (): Promise<void> => {
    const before = time.now() - config.keep.days * DAY_MS
    const policy = { jobs: config.keep.jobs, bytes: parseSize(config.keep.bytes), before }
    let deleted = 0
    // Repeat until nothing is expired: jobs may arrive faster than one batch per sweep.
    while (!context.closing.aborted) {
      const expired = await store.expiredJobs(policy)
      if (expired.length === 0) break
      for (let at = 0; at < expired.length; at += DELETE_BATCH)
        await Promise.all(expired.slice(at, at + DELETE_BATCH).map(deleteJob))
      deleted += expired.length
      await store.compact()
    }
    if (deleted > 0) log.info({ jobs: deleted }, 'deleted old jobs')
  }

  const deleteJob = async (id: string): Promise<void> => {
    for (const blob of (await store.deleteJob(id)) ?? []) await context.blobs.removeUnused(blob)
  }

  const sweepBlobs = async (): Promise<void> => {
    await store.releaseStaleBlobs(time.now() - UPLOAD_TTL_MS)
    // Also removes files whose job was deleted by a daemon that died before it could remove them.
    for await (const sha256 of context.blobs.list()) await context.blobs.removeUnused(sha256)
  }

  return { failStranded, failOverdue, sweepJobs, sweepBlobs }
}
