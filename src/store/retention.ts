import type { Artifact } from '../jobs/job.ts'
import type { RetentionPolicy } from '../ports.ts'
import { all, get, run, type Work } from './sql.ts'

/** Jobs per call, so that a sweep does not block other writes for long. */
const MAX_EXPIRED = 500

/**
 * Selects jobs to delete, oldest first: by age, then by count, then by bytes. Skips jobs whose machine is still
 * recorded, and those that a waiting job needs.
 */
export function* expiredJobs(policy: RetentionPolicy): Work<string[]> {
  const { row: totals } = yield get(
    'select count(*) as jobs, coalesce(sum(stored_bytes), 0) as bytes from jobs where completed_at is not null',
  )
  let jobsOver = Number(totals?.jobs ?? 0) - policy.jobs
  let bytesOver = Number(totals?.bytes ?? 0) - policy.bytes
  const { rows: candidates } = yield all(
    `select id, completed_at, stored_bytes from jobs j
     where completed_at is not null and not exists (select 1 from machines m where m.job_id = j.id)
       and not exists (select 1 from needs n where n.needed_id = j.id)
     order by completed_at limit ?`,
    MAX_EXPIRED,
  )
  const expired: string[] = []
  for (const row of candidates) {
    if (Number(row.completed_at) >= policy.before && jobsOver <= 0 && bytesOver <= 0) break
    expired.push(String(row.id))
    jobsOver -= 1
    bytesOver -= Number(row.stored_bytes)
  }
  return expired
}

/** Records which blobs a job needs. The list of artifacts itself is in the job result. */
export function* insertBlobUse(jobId: string, blobs: readonly Artifact[]): Work<void> {
  let bytes = 0
  for (const blob of blobs) {
    const { changes } = yield run(
      'insert into artifacts (job_id, path, sha256, size) values (?, ?, ?, ?) on conflict do nothing',
      jobId,
      blob.path,
      blob.sha256,
      blob.size,
    )
    if (changes > 0) bytes += blob.size
  }
  if (bytes > 0) yield run('update jobs set stored_bytes = stored_bytes + ? where id = ?', bytes, jobId)
}

export function* isBlobUsed(sha256: string): Work<boolean> {
  const { row } = yield get(
    `select 1 as used from artifacts where sha256 = ?1 union all select 1 from blob_holds where sha256 = ?1 limit 1`,
    sha256,
  )
  return row !== undefined
}

/** Holds a blob for a job that does not refer to it yet. */
export function* holdBlob(sha256: string, holder: string, at: number): Work<void> {
  yield run(
    `insert into blob_holds (holder, sha256, at) values (?, ?, ?)
     on conflict (holder, sha256) do update set at = excluded.at`,
    holder,
    sha256,
    at,
  )
}

/** The job record now refers to the blobs it needs, so the holds can go. */
export function* releaseBlobs(holder: string): Work<void> {
  yield run('delete from blob_holds where holder = ?', holder)
}

/** Releases unused uploads and the blobs of failed submits. Unfinished jobs keep their holds. */
export function* releaseStaleBlobs(before: number): Work<void> {
  yield run(
    `delete from blob_holds where at < ?
       and not exists (select 1 from jobs where id = holder and completed_at is null)`,
    before,
  )
}
