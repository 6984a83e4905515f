import type { Job } from '../jobs/job.ts'
import type { Database } from './database.ts'

type Waiting = Pick<Job, 'state' | 'runtime' | 'priority'>

/**
 * How many jobs wait, by runtime and priority. Kept beside the database because counting a long queue at every
 * submit would make each submit slower than the one before.
 */
export interface QueueCounts {
  /** Tells of a change of state; undefined stands for a job that is not there. */
  moved(before: Waiting | undefined, after: Waiting | undefined): void
  /** All that wait for one runtime. */
  of(runtime: string): number
  /** The place of a job that came just now: behind all of its priority and above. */
  last(job: Waiting): number
}

export const createQueueCounts = (database: Database): QueueCounts => {
  const queues = new Map<string, Map<number, number>>()
  const add = (job: Waiting | undefined, by: number): void => {
    if (job?.state !== 'pending') return
    const queue = queues.get(job.runtime) ?? new Map<number, number>()
    queues.set(job.runtime, queue.set(job.priority, (queue.get(job.priority) ?? 0) + by))
  }
  const rows = database.all(
    `select runtime, priority, count(*) as count from jobs
     where completed_at is null and state = 'pending' group by runtime, priority`,
  )
  for (const row of rows)
    add({ state: 'pending', runtime: String(row.runtime), priority: Number(row.priority) }, Number(row.count))

  return {
    moved: (before, after) => {
      add(before, -1)
      add(after, 1)
    },
    of: runtime => {
      let waiting = 0
      for (const count of queues.get(runtime)?.values() ?? []) waiting += count
      return waiting
    },
    last: ({ runtime, priority }) => {
      let place = 0
      for (const [other, count] of queues.get(runtime) ?? []) if (other >= priority) place += count
      return place
    },
  }
}
