import type { JobEvent } from '../jobs/job.ts'
import type { NewEvent } from '../ports.ts'
import { toEvent } from './rows.ts'
import { all, event, get, type Work } from './sql.ts'

export function* insertEvent(jobId: string, { at, type, data }: NewEvent): Work<void> {
  yield event(jobId, at, type, JSON.stringify(data))
}

export function* readEvents(query: { jobId?: string; after: number; limit: number }): Work<JobEvent[]> {
  const { rows } = yield query.jobId === undefined
    ? all('select * from events where seq > ? order by seq limit ?', query.after, query.limit)
    : all(
        'select * from events where job_id = ? and seq > ? order by seq limit ?',
        query.jobId,
        query.after,
        query.limit,
      )
  return rows.map(toEvent)
}

export function* lastEvent(): Work<number> {
  const { row } = yield get('select max(seq) as seq from events')
  return Number(row?.seq ?? 0)
}
