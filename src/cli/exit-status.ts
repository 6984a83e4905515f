import { constants } from 'node:os'
import type { JobView } from '../engine/deputy.ts'

/** As `timeout(1)` has it. */
const TIMED_OUT = 124
export const INTERRUPTED = 130

/** The exit status for a finished job: the job's own if it has one. */
export const exitStatusOf = (job: Pick<JobView, 'status' | 'exit_code' | 'signal'>): number => {
  if (job.status === 'timeout') return TIMED_OUT
  if (job.status === 'cancelled') return INTERRUPTED
  if (job.signal !== null) return 128 + signalNumber(job.signal)
  if (job.status === 'success') return job.exit_code ?? 0
  // The machine failed, or an agent reported failure although its process exited with 0.
  return job.exit_code === null || job.exit_code === 0 ? 1 : job.exit_code & 0xff
}

const signalNumber = (name: string): number =>
  Object.entries(constants.signals).find(([signal]) => signal === name)?.[1] ?? 0
