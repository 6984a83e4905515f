import type { JobSummary, JobView } from '../../../engine/deputy.ts'
import { isTerminal } from '../../../jobs/states.ts'
import { logUri } from '../../job-uris.ts'

/** Describes a job for a model: without empty fields, and with the next step. */
export const describeJob = (job: JobView): Record<string, unknown> =>
  prune({
    job_id: job.job_id,
    status: job.status,
    progress: job.progress,
    output_tail: job.output_tail,
    queue_position: job.queue_position,
    waits_for: job.waits_for,
    runtime: job.runtime,
    machine_id: job.machine_id,
    where: job.where,
    created_at: job.created_at,
    started_at: job.started_at,
    completed_at: job.completed_at,
    duration_seconds: job.duration_seconds,
    timeout_seconds: job.timeout_seconds,
    attempts: job.attempts > 1 ? job.attempts : null,
    cancel_requested: job.cancel_requested || null,
    phases: job.phases,
    exit_code: job.exit_code,
    signal: job.signal,
    error: job.error,
    output_bytes: job.output_bytes,
    labels: job.labels,
    deduplicated: job.deduplicated,
    log_uri: logUri(job.job_id),
    next: nextStep(job),
  })

export const nextStep = (job: Pick<JobView, 'status' | 'job_id'>): string =>
  isTerminal(job.status)
    ? 'Finished: get_job_result has exit code, output and artifacts.'
    : 'get_job_result with wait_seconds: 50 waits for its end; stream_job_output shows output so far. The job keeps running if you stop waiting.'

/** Removes null, undefined and empty objects, which only cost tokens. */
export const prune = (value: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(value).filter(([, entry]) => !isEmpty(entry)))

const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || (typeof value === 'object' && Object.keys(value).length === 0)

/** One row of a list. */
export const describeSummary = (job: JobSummary, taskBytes: number): Record<string, unknown> =>
  prune({
    job_id: job.job_id,
    status: job.status,
    task: shorten(job.task, taskBytes),
    agent: job.agent === 'script' ? null : job.agent,
    runtime: job.runtime,
    created_at: job.created_at,
    duration_seconds: job.duration_seconds,
    exit_code: job.exit_code,
    labels: job.labels,
  })

/** Shortens a text to one line of at most `maxBytes` bytes in JSON. */
export const shorten = (text: string, maxBytes: number): string => {
  const line = text.replace(/\p{C}+|\s+/gu, ' ').trim()
  if (jsonBytes(line) <= maxBytes) return line
  let kept = ''
  let size = 3
  for (const character of line) {
    size += jsonBytes(character)
    if (size > maxBytes) break
    kept += character
  }
  return `${kept.trimEnd()}…`
}

const jsonBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text)) - 2
