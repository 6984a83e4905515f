import type { Review } from '../jobs/review.ts'
import type { NewEvent } from '../ports.ts'
import type { Database } from './database.ts'
import { update } from './jobs-table.ts'

export const getReview = (database: Database, id: string): Review | undefined => {
  const row = database.get('select body from reviews where job_id = ?', id)
  return row && (JSON.parse(String(row.body)) as Review)
}

/** Call inside a transaction. */
export const changeReview = (
  database: Database,
  id: string,
  change: (review: Review) => Review,
  event?: NewEvent,
): Review => {
  const review = change(getReview(database, id) ?? { viewed: [], decision: null })
  database.run(
    'insert into reviews (job_id, body) values (?, ?) on conflict do update set body = excluded.body',
    id,
    JSON.stringify(review),
  )
  update(database, id, {}, event)
  return review
}
