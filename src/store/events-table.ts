import type { JobEvent } from '../jobs/job.ts'
import type { NewEvent } from '../ports.ts'
import type { Database } from './database.ts'
import { toEvent } from './rows.ts'

export const insertEvent = (database: Database, jobId: string, event: NewEvent): void => {
  database.run(
    'insert into events (job_id, at, type, data) values (?, ?, ?, ?)',
    jobId,
    event.at,
    event.type,
    JSON.stringify(event.data),
  )
}

export const readEvents = (
  database: Database,
  query: { jobId?: string; after: number; limit: number },
): JobEvent[] =>
  (query.jobId === undefined
    ? database.all('select * from events where seq > ? order by seq limit ?', query.after, query.limit)
    : database.all(
        'select * from events where job_id = ? and seq > ? order by seq limit ?',
        query.jobId,
        query.after,
        query.limit,
      )
  ).map(toEvent)

export const lastEvent = (database: Database): number =>
  Number(database.get('select max(seq) as seq from events')?.seq ?? 0)
