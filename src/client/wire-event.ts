import type { EventType, JobEvent } from '../jobs/job.ts'

/** An event as JSON, with snake_case keys and ISO times like all views. */
export interface WireEvent {
  readonly seq: number
  readonly job_id: string
  readonly at: string
  readonly type: EventType
  readonly data: Readonly<Record<string, unknown>>
}

export const encodeEvent = ({ seq, jobId, at, type, data }: JobEvent): WireEvent => ({
  seq,
  job_id: jobId,
  at: new Date(at).toISOString(),
  type,
  data,
})

export const decodeEvent = ({ seq, job_id, at, type, data }: WireEvent): JobEvent => ({
  seq,
  jobId: job_id,
  at: Date.parse(at),
  type,
  data,
})
