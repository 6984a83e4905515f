import { z } from 'zod'
import type { Deputy, JobResult, JobView } from '../../../engine/deputy.ts'
import { AppError } from '../../../jobs/errors.ts'
import { isTerminal } from '../../../jobs/states.ts'
import { defineTool, reads, type ToolOutcome } from '../../tool.ts'
import { describeJob, prune } from './describe-job.ts'
import { fullJobId, jobId } from './job-id.ts'
import { MAX_WAIT_SECONDS, waitForEnd } from './wait-for-end.ts'

const DEFAULT_BYTES = 16 * 1024
/** Clients truncate larger results themselves, without saying where. */
const MAX_BYTES = 256 * 1024

export const getJobResult = defineTool({
  name: 'get_job_result',
  title: 'Result of a job',
  description:
    'Exit code, output (head and tail), error, artifacts and usage of a job. wait_seconds waits for its end.',
  annotations: reads(),
  input: z.strictObject({
    job_id: jobId,
    wait_seconds: z.number().min(0).max(MAX_WAIT_SECONDS).optional(),
    max_bytes: z.number().int().min(0).max(MAX_BYTES).optional().describe('Of output'),
  }),
  run: async (input, context) => {
    const id = await fullJobId(context.deputy, input.job_id)
    if (input.wait_seconds) await waitForEnd(id, input.wait_seconds, context)
    return jobResult(context.deputy, id, input.max_bytes ?? DEFAULT_BYTES)
  },
})

export const jobResult = async (
  deputy: Deputy,
  id: string,
  maxBytes: number = DEFAULT_BYTES,
): Promise<ToolOutcome> => {
  const job = await deputy.get(id)
  if (!isTerminal(job.status)) throw notFinished(job)
  const result = await deputy.result(id, { maxBytes })
  return { data: describeResult(result) }
}

const notFinished = (job: JobView): AppError =>
  new AppError('conflict', `Job ${job.job_id} is not finished: its status is ${job.status}.`, {
    hint: 'Call get_job_result with wait_seconds: 50; stream_job_output shows the output so far.',
    retryable: true,
  })

const describeResult = (result: JobResult): Record<string, unknown> => {
  const { log_uri, next: _, ...job } = describeJob(result)
  return {
    ...job,
    output: result.output,
    ...prune({
      truncated: result.truncated,
      // No uri: read_artifact takes the path, and the instructions tell how uris are made.
      artifacts: result.artifacts.map(({ path, size }) => ({ path, size })),
      skipped_artifacts: result.skipped_artifacts,
      unmatched_artifacts: result.unmatched_artifacts,
      patch: result.patch && { size: result.patch.size },
      usage: result.usage && prune({ ...result.usage }),
      // Only reported when there was no isolation, to save tokens.
      isolation: result.isolation.includes('none') ? result.isolation : null,
      limits_hit: result.limits_hit,
      members: result.members?.map(({ usage, ...member }) =>
        prune({ ...member, cost_usd: usage?.costUsd, has_patch: member.has_patch || null }),
      ),
    }),
    log_uri,
    ...prune({ next: nextOf(result) }),
  }
}

const nextOf = (result: JobResult): string | null => {
  if (result.truncated !== null)
    return 'Output truncated: read all kept output with stream_job_output and a cursor.'
  if (result.artifacts.length > 0) return 'read_artifact has the content of an artifact.'
  return null
}
