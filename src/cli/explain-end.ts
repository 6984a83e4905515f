import type { JobView } from '../engine/deputy.ts'
import { visible } from '../jobs/visible-text.ts'
import type { Context } from './context.ts'
import { duration } from './terminal/format.ts'

/** Prints to stderr why a job ended when its output does not show it: timeout, cancel, failed machine. */
export const explainEnd = async (context: Context, job: JobView): Promise<void> => {
  const reason = reasonOf(job)
  if (reason === undefined) return
  const { red, dim } = context.errColors
  const hint = job.error?.hint === undefined ? '' : `${dim('hint:')} ${visible(job.error.hint)}\n`
  await context.err.write(`${red('deputy:')} ${visible(reason)}\n${hint}`)
}

const reasonOf = (job: JobView): string | undefined => {
  if (job.status === 'timeout')
    return job.error?.message ?? `The job ran longer than its ${duration(job.timeout_seconds)}.`
  if (job.status === 'cancelled') return job.error?.message ?? 'The job was cancelled.'
  if (job.status !== 'failed') return undefined
  // A plain exit status needs no explanation.
  if (job.exit_code !== null && job.exit_code !== 0) return undefined
  if (job.signal !== null) return job.error?.message ?? `The job was ended by ${job.signal}.`
  return job.error?.message ?? 'The job failed.'
}
