import type { JobView } from '../engine/deputy.ts'
import { formatSize } from '../jobs/sizes.ts'
import { oneLine, visible } from '../jobs/visible-text.ts'
import type { Colors } from './terminal/colors.ts'
import { fact } from './terminal/fact.ts'
import { age, duration, phases, statusColor, statusMark } from './terminal/format.ts'

/** Formats a job, one fact per line; unknown facts are left out. `width`: where lines break. */
export const describeJob = (job: JobView, colors: Colors, width: number): string => {
  const end = job.signal ?? (job.exit_code === null ? undefined : String(job.exit_code))
  const labels = Object.entries(job.labels).map(([name, value]) => (value === '' ? name : `${name}=${value}`))
  const facts: (readonly [string, string | undefined])[] = [
    ['job', job.job_id],
    ['status', statusColor(job.status, colors)(`${statusMark(job.status)} ${job.status}`)],
    ['exit', end],
    ['task', oneLine(job.task, 200)],
    ['agent', job.agent === 'script' ? undefined : job.agent],
    ['runtime', job.runtime],
    ['where', job.where === undefined ? undefined : visible(job.where)],
    ['machine', job.machine_id ?? undefined],
    ['progress', job.progress === null ? undefined : oneLine(job.progress, 200)],
    ['queue', job.queue_position === null ? undefined : `place ${job.queue_position}`],
    ['created', `${job.created_at} (${age(job.created_at)} ago, by ${visible(job.origin)})`],
    ['duration', job.duration_seconds === null ? undefined : duration(job.duration_seconds)],
    ['timeout', duration(job.timeout_seconds)],
    ['phases', phases(job.phases) || undefined],
    ['attempts', job.attempts > 1 ? String(job.attempts) : undefined],
    ['output', job.output_bytes > 0 ? formatSize(job.output_bytes) : undefined],
    ['labels', labels.length === 0 ? undefined : visible(labels.join(', '))],
    ['cancel', job.cancel_requested && job.completed_at === null ? 'requested' : undefined],
    ['error', job.error === null ? undefined : colors.red(visible(job.error.message))],
    ['hint', job.error?.hint === undefined ? undefined : visible(job.error.hint)],
  ]
  return facts.map(([name, value]) => (value === undefined ? '' : fact(name, value, colors, width))).join('')
}
