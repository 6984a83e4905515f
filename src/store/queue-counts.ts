import type { Job } from '../jobs/job.ts'
import { all, type Work } from './sql.ts'

type QueuedJob = Pick<Job, 'state' | 'runtime' | 'priority'>

/**
 * Counts pending jobs by provider and priority. Kept in memory, because counting a long queue in SQL would slow down
 * each submit.
 */
export interface QueueCounts {
  /** Records a state change. `before` is undefined for a new job, `after` for a deleted one. */
  moved(before: QueuedJob | undefined, after: QueuedJob | undefined): void
  /** Number of pending jobs of a provider. */
  waiting(runtime: string): number
  /** Queue position of a new job: after all jobs of the same or a higher priority. */
  positionOfNew(job: QueuedJob): number
}

export function* readQueueCounts(): Work<QueueCounts> {
  const queues = new Map<string, Map<number, number>>()
  const add = (job: QueuedJob | undefined, by: number): void => {
    if (job?.state !== 'pending') return
    const queue = queues.get(job.runtime) ?? new Map<number, number>()
    queues.set(job.runtime, queue.set(job.priority, (queue.get(job.priority) ?? 0) + by))
  }
  const { rows } = yield all(
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
    waiting: runtime => {
      let waiting = 0
      for (const count of queues.get(runtime)?.values() ?? []) waiting += count
      return waiting
    },
    positionOfNew: ({ runtime, priority }) => {
      let position = 0
      for (const [other, count] of queues.get(runtime) ?? []) if (other >= priority) position += count
      return position
    },
  }
}
