import { z } from 'zod'
import { manifestSchema } from '../../../jobs/manifest.ts'
import { isTerminal } from '../../../jobs/states.ts'
import { compactSchema } from '../../compact-schema.ts'
import { logUri } from '../../job-uris.ts'
import { changes, defineTool } from '../../tool.ts'
import { nextStep, prune } from './describe-job.ts'
import { jobResult } from './get-job-result.ts'
import { MAX_WAIT_SECONDS, waitForEnd } from './wait-for-end.ts'

/** Only lists the schema of the manifest. The engine validates the manifest and reports every problem in it. */
const manifest = z
  .custom<unknown>(value => value !== undefined, 'is required')
  .meta(compactSchema(manifestSchema, 'input'))

export const submitJob = defineTool({
  name: 'submit_job',
  title: 'Submit a job',
  description:
    'Run a script, build or AI agent on an isolated machine. Returns job_id at once, or the result if the job ends within wait_seconds. The job outlives this call and this client. A manifest that is only a script can be a string.',
  annotations: changes({ destructive: false, idempotent: false, openWorld: true }),
  input: z.strictObject({
    manifest,
    wait_seconds: z.number().min(0).max(MAX_WAIT_SECONDS).optional(),
  }),
  output: z.looseObject({
    job_id: z.string(),
    status: z.string(),
    log_uri: z.string(),
  }),
  run: async (input, context) => {
    const { deputy, origin, directories } = context
    const submitted = await deputy.submit(parsed(input.manifest), origin, { directories })
    const wait = input.wait_seconds
    const job = wait ? await waitForEnd(submitted.job_id, wait, context) : submitted
    if (wait && isTerminal(job.status)) return jobResult(deputy, job.job_id)
    const data = prune({
      job_id: job.job_id,
      status: job.status,
      runtime: job.runtime,
      runtime_because: submitted.runtime_because,
      queue_position: job.queue_position,
      deduplicated: submitted.deduplicated,
      log_uri: logUri(job.job_id),
      next: nextStep(job),
    })
    return { data, startedJob: job.job_id }
  },
})

/** Parses JSON text, because some clients send nested objects as text. Any other text is a script. */
const parsed = (value: unknown): unknown => {
  if (typeof value !== 'string') return value
  try {
    const manifest: unknown = JSON.parse(value)
    return typeof manifest === 'object' ? manifest : { task: value }
  } catch {
    return { task: value }
  }
}
