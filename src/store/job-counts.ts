import type { Job } from '../jobs/job.ts'
import type { JobState } from '../jobs/states.ts'
import { countJobs, hasPending, pendingJobs, queuePosition } from './jobs-table.ts'
import { readQueueCounts } from './queue-counts.ts'
import type { Work } from './sql.ts'

type CountedJob = Pick<Job, 'state' | 'runtime' | 'priority'>

/** Numbers of jobs by state, and of pending jobs by provider. */
export interface JobCounts {
  /** Called after each committed change of a state. `before` is undefined for a new job, `after` for a deleted one. */
  moved(before: CountedJob | undefined, after: CountedJob | undefined): void
  states(): Promise<Record<JobState, number>>
  pending(): Promise<number>
  hasPending(runtime: string): Promise<boolean>
  positionOfNew(job: Job): Promise<number>
}

/** Counts in memory, for a database that only this process writes. */
export function* readMemoryCounts(): Work<JobCounts> {
  const states = yield* countJobs()
  const queue = yield* readQueueCounts()
  return {
    moved: (before, after) => {
      if (before !== undefined) states[before.state] -= 1
      if (after !== undefined) states[after.state] += 1
      queue.moved(before, after)
    },
    states: async () => ({ ...states }),
    pending: async () => states.pending,
    hasPending: async runtime => queue.waiting(runtime) > 0,
    positionOfNew: async job => queue.positionOfNew(job),
  }
}

/** Every submit asks for the number of pending jobs, only to compare it with a limit. */
const PENDING_TTL_MS = 1000

/** Counts in the database, because other daemons write to it too. */
export const sharedCounts = (read: <T>(work: () => Work<T>) => Promise<T>): JobCounts => {
  let pending: { readonly count: Promise<number>; readonly at: number } | undefined
  return {
    moved: () => {},
    states: () => read(countJobs),
    pending: () => {
      if (pending === undefined || performance.now() - pending.at > PENDING_TTL_MS)
        pending = { count: read(pendingJobs), at: performance.now() }
      return pending.count
    },
    hasPending: runtime => read(() => hasPending(runtime)),
    positionOfNew: job => read(() => queuePosition(job)),
  }
}
