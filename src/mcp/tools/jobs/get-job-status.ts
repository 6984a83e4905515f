import { z } from 'zod'
import { defineTool, reads } from '../../tool.ts'
import { describeJob } from './describe-job.ts'
import { fullJobId, jobId } from './job-id.ts'
import { MAX_WAIT_SECONDS, waitForEnd } from './wait-for-end.ts'

export const getJobStatus = defineTool({
  name: 'get_job_status',
  title: 'Status of a job',
  description: 'Status, progress, queue position, times and error of a job. wait_seconds waits for its end.',
  annotations: reads(),
  input: z.strictObject({
    job_id: jobId,
    wait_seconds: z.number().min(0).max(MAX_WAIT_SECONDS).optional(),
  }),
  run: async (input, context) => {
    const id = await fullJobId(context.deputy, input.job_id)
    const wait = input.wait_seconds
    return { data: describeJob(wait ? await waitForEnd(id, wait, context) : await context.deputy.get(id)) }
  },
})
