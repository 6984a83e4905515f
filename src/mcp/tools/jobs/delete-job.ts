import { z } from 'zod'
import { changes, defineTool } from '../../tool.ts'
import { fullJobId, jobId } from './job-id.ts'

export const deleteJob = defineTool({
  name: 'delete_job',
  title: 'Delete a job',
  description: 'Delete a finished job with its output, artifacts and kept machine.',
  annotations: changes({ destructive: true, idempotent: true, openWorld: false }),
  input: z.strictObject({ job_id: jobId }),
  run: async (input, { deputy }) => {
    const id = await fullJobId(deputy, input.job_id)
    await deputy.delete(id)
    return { data: { job_id: id, deleted: true } }
  },
})
