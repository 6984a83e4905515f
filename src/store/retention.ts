import type { Artifact } from '../jobs/job.ts'
import type { RetentionPolicy } from '../ports.ts'
import type { Database } from './database.ts'

/** Jobs per call, so that a sweep does not block other writes for long. */
const MAX_EXPIRED = 500

/**
 * Selects jobs to delete, oldest first: by age, then by count, then by bytes. Skips jobs whose machine is still
 * recorded.
 */
export const expiredJobs = (database: Database, policy: RetentionPolicy): string[] => {
  const totals = database.get(
    'select count(*) as jobs, coalesce(sum(stored_bytes), 0) as bytes from jobs where completed_at is not null',
  )
  let jobsOver = Number(totals?.jobs ?? 0) - policy.jobs
  let bytesOver = Number(totals?.bytes ?? 0) - policy.bytes
  const candidates = database.all(
    `select id, completed_at, stored_bytes from jobs j
     where completed_at is not null and not exists (select 1 from machines m where m.job_id = j.id)
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
export const insertBlobUse = (database: Database, jobId: string, blobs: readonly Artifact[]): void => {
  let bytes = 0
  for (const blob of blobs) {
    const { changes } = database.run(
      'insert into artifacts (job_id, path, sha256, size) values (?, ?, ?, ?) on conflict do nothing',
      jobId,
      blob.path,
      blob.sha256,
      blob.size,
    )
    if (changes > 0) bytes += blob.size
  }
  if (bytes > 0) database.run('update jobs set stored_bytes = stored_bytes + ? where id = ?', bytes, jobId)
}

export const isBlobUsed = (database: Database, sha256: string): boolean =>
  database.get(
    `select 1 as used from artifacts where sha256 = ?1 union all select 1 from blob_holds where sha256 = ?1 limit 1`,
    sha256,
  ) !== undefined

/** Holds a blob for a job that does not refer to it yet. */
export const holdBlob = (database: Database, sha256: string, holder: string, at: number): void =>
  void database.run(
    'insert into blob_holds (holder, sha256, at) values (?, ?, ?) on conflict do update set at = excluded.at',
    holder,
    sha256,
    at,
  )

/** The job record now refers to the blobs it needs, so the holds can go. */
export const releaseBlobs = (database: Database, holder: string): void =>
  void database.run('delete from blob_holds where holder = ?', holder)

/** Releases unused uploads and the blobs of failed submits. Unfinished jobs keep their holds. */
export const releaseStaleBlobs = (database: Database, before: number): void =>
  void database.run(
    `delete from blob_holds where at < ?
       and not exists (select 1 from jobs where id = holder and completed_at is null)`,
    before,
  )
