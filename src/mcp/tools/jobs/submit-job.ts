import { z } from 'zod'
import { manifestSchema } from '../../../jobs/manifest.ts'
import { isTerminal } from '../../../jobs/states.ts'
import { compactSchema } from '../../compact-schema.ts'
import { logUri } from '../../job-uris.ts'
import { changes, defineTool } from '../../tool.ts'
import { nextStep, prune } from './describe-job.ts'
import { jobResult } from './get-job-result.ts'
import { MAX_WAIT_SECONDS, waitForEnd } from './wait-for-end.ts'

/** Keys that are listed with types and descriptions. Every conversation pays for them, so the others are only named. */
const COMMON = {
  task: true,
  agentType: true,
  files: true,
  workspace: true,
  needs: true,
  env: true,
  secrets: true,
  artifacts: true,
  resources: true,
  timeout: true,
  network: true,
  image: true,
  lifecycle: true,
  machine: true,
} as const

const otherKeys = Object.entries(compactSchema(manifestSchema.omit(COMMON)).properties ?? {}).map(
  ([key, { properties }]: [string, { properties?: object }]) =>
    properties ? `${key}{${Object.keys(properties).join(',')}}` : key,
)

const { additionalProperties: _, ...listedManifest } = compactSchema(manifestSchema.pick(COMMON))

/** Only lists the schema of the manifest. The engine validates the manifest and reports every problem in it. */
const manifest = z
  .custom<unknown>(value => value !== undefined, 'is required')
  .meta({ ...listedManifest, description: `More keys: ${otherKeys.join(', ')}` })

export const submitJob = defineTool({
  name: 'submit_job',
  title: 'Submit a job',
  description:
    'Run a script, build or AI agent on an isolated machine. Returns job_id at once, or the result if the job ends within wait_seconds. The job outlives this call and this client. A manifest may be just a script.',
  annotations: changes({ destructive: false, idempotent: false, openWorld: true }),
  input: z.strictObject({
    manifest,
    wait_seconds: z.number().min(0).max(MAX_WAIT_SECONDS).optional(),
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
      waits_for: job.waits_for,
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
