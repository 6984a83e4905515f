import { z } from 'zod'
import { manifestSchema } from '../../../jobs/manifest.ts'
import { compactSchema } from '../../compact-schema.ts'
import { logUri } from '../../job-uris.ts'
import { changes, defineTool } from '../../tool.ts'
import { nextStep, prune } from './describe.ts'

/** The engine checks the manifest and names every problem in it; here it only has a shape to show. */
const manifest = z
  .custom<unknown>(value => value !== undefined, 'is required')
  .meta(compactSchema(manifestSchema, 'input'))

export const submitJob = defineTool({
  name: 'submit_job',
  title: 'Submit a job',
  description:
    'Run a script, build or AI agent on an isolated machine. Returns job_id at once; the job outlives this call and this client.',
  annotations: changes({ destructive: false, idempotent: false, openWorld: true }),
  input: z.strictObject({ manifest }),
  output: z.looseObject({
    job_id: z.string(),
    status: z.string(),
    runtime: z.string(),
    log_uri: z.string(),
    next: z.string(),
  }),
  run: async (input, { deputy, origin, directories }) => {
    const job = await deputy.submit(parsed(input.manifest), origin, { directories })
    const data = prune({
      job_id: job.job_id,
      status: job.status,
      runtime: job.runtime,
      queue_position: job.queue_position,
      deduplicated: job.deduplicated,
      log_uri: logUri(job.job_id),
      next: nextStep(job),
    })
    return {
      data,
      links: [{ uri: logUri(job.job_id), name: 'log', mimeType: 'text/plain' }],
      startedJob: job.job_id,
    }
  },
})

/** Some clients send a nested object as the text of its JSON. */
const parsed = (value: unknown): unknown => {
  if (typeof value !== 'string') return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}
