import { z } from 'zod'
import { changes, defineTool } from '../../tool.ts'
import { jobId } from './job-id.ts'

export const deleteJob = defineTool({
  name: 'delete_job',
  title: 'Delete a job',
  description: 'Forget a finished job: output, artifacts and kept machine.',
  annotations: changes({ destructive: true, idempotent: true, openWorld: false }),
  input: z.strictObject({ job_id: jobId }),
  output: z.looseObject({ job_id: z.string(), deleted: z.boolean() }),
  run: async (input, { deputy }) => {
    await deputy.delete(input.job_id)
    return { data: { job_id: input.job_id, deleted: true } }
  },
})
