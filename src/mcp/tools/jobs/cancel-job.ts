import { z } from 'zod'
import { isTerminal } from '../../../jobs/states.ts'
import { changes, defineTool } from '../../tool.ts'
import { describeJob } from './describe.ts'
import { jobId } from './job-id.ts'

export const cancelJob = defineTool({
  name: 'cancel_job',
  title: 'Cancel a job',
  description: 'End a job. Output and artifacts so far are kept.',
  annotations: changes({ destructive: true, idempotent: true, openWorld: false }),
  input: z.strictObject({ job_id: jobId }),
  output: z.looseObject({ job_id: z.string(), status: z.string(), cancelled: z.boolean() }),
  run: async (input, { deputy, origin }) => {
    const job = await deputy.cancel(input.job_id, origin)
    return {
      data: {
        ...describeJob(job),
        // Accepted; the status says when it is done.
        cancelled: job.status === 'cancelled' || !isTerminal(job.status),
      },
    }
  },
})
