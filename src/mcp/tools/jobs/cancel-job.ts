import { z } from 'zod'
import { changes, defineTool } from '../../tool.ts'
import { describeJob } from './describe-job.ts'
import { fullJobId, jobId } from './job-id.ts'

export const cancelJob = defineTool({
  name: 'cancel_job',
  title: 'Cancel a job',
  description: 'Cancel a job. Output and artifacts so far are kept.',
  annotations: changes({ destructive: true, idempotent: true, openWorld: false }),
  input: z.strictObject({ job_id: jobId }),
  run: async (input, { deputy, origin }) => {
    const job = await deputy.cancel(await fullJobId(deputy, input.job_id), origin)
    // A running job ends a moment later; until then `cancel_requested` is set.
    return { data: { ...describeJob(job), cancelled: job.status === 'cancelled' } }
  },
})
