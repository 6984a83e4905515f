import type { Review } from '../jobs/review.ts'
import type { NewEvent } from '../ports.ts'
import { update } from './jobs-table.ts'
import { get, run, type Work } from './sql.ts'

export function* getReview(id: string): Work<Review | undefined> {
  const { row } = yield get('select body from reviews where job_id = ?', id)
  return row && (JSON.parse(String(row.body)) as Review)
}

/** Call inside a transaction. */
export function* changeReview(
  id: string,
  change: (review: Review) => Review,
  event?: NewEvent,
): Work<Review> {
  // Orders the changes of several daemons; the review may not exist yet.
  yield get('select 1 from jobs where id = ? /*postgres for update */', id)
  const review = change((yield* getReview(id)) ?? { viewed: [], decision: null })
  yield run(
    'insert into reviews (job_id, body) values (?, ?) on conflict (job_id) do update set body = excluded.body',
    id,
    JSON.stringify(review),
  )
  yield* update(id, {}, event)
  return review
}
