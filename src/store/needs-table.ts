import type { Manifest } from '../jobs/manifest.ts'
import { STATES } from '../jobs/states.ts'
import type { NeededJob, Release } from '../ports/store.ts'
import { insertEvent } from './events-table.ts'
import { insertBlobUse, releaseBlobs } from './retention.ts'
import { oneOf } from './rows.ts'
import { all, get, run, type Work } from './sql.ts'

/** Which job waits for which. A job with rows in this table is not claimed. */

export function* insertNeeds(jobId: string, needed: readonly string[]): Work<void> {
  for (const id of needed)
    yield run('insert into needs (job_id, needed_id) values (?, ?) on conflict do nothing', jobId, id)
}

export function* deleteNeeds(jobId: string): Work<number> {
  const { changes } = yield run('delete from needs where job_id = ?', jobId)
  return changes
}

export function* settledNeeds(): Work<NeededJob[]> {
  const { rows } = yield all(
    `select n.job_id, n.needed_id, j.state from needs n left join jobs j on j.id = n.needed_id
     where j.id is null or (j.completed_at is not null and j.state <> 'success')
       or not exists (
         select 1 from needs o join jobs p on p.id = o.needed_id
         where o.job_id = n.job_id and p.completed_at is null)
     order by n.job_id, n.needed_id`,
  )
  return rows.map(row => ({
    jobId: String(row.job_id),
    neededId: String(row.needed_id),
    state: row.state === null ? null : oneOf(STATES, row.state),
  }))
}

export function* neededJobs(): Work<string[]> {
  const { rows } = yield all('select distinct needed_id from needs')
  return rows.map(row => String(row.needed_id))
}

export function* unfinishedNeeds(jobId: string): Work<string[]> {
  const { rows } = yield all(
    `select n.needed_id from needs n left join jobs j on j.id = n.needed_id
     where n.job_id = ? and j.completed_at is null order by n.needed_id`,
    jobId,
  )
  return rows.map(row => String(row.needed_id))
}

export function* waitingJob(neededId: string): Work<string | undefined> {
  const { row } = yield get('select job_id from needs where needed_id = ? limit 1', neededId)
  return row && String(row.job_id)
}

export function* releaseJob(id: string, { at, queueUntil, workspace }: Release): Work<boolean> {
  if ((yield* deleteNeeds(id)) === 0) return false
  yield run('update jobs set queue_until = ? where id = ?', queueUntil, id)
  if (workspace !== undefined) {
    const { row } = yield get('select body from manifests where job_id = ?', id)
    const manifest = JSON.parse(String(row?.body)) as Manifest
    const changed = {
      ...manifest,
      workspace: { patch: false, ...manifest.workspace, blob: workspace.sha256 },
    }
    yield run('update manifests set body = ? where job_id = ?', JSON.stringify(changed), id)
    // Not '/workspace', the path of the workspace as it was submitted.
    yield* insertBlobUse(id, [{ path: '/inputs', ...workspace }])
    yield* releaseBlobs(id)
  }
  yield* insertEvent(id, { type: 'progress', at, data: { reason: 'the jobs that it needs have succeeded' } })
  return true
}
