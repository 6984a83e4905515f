import { z } from 'zod'
import { ERROR_TABLE, type ErrorCode } from '../jobs/errors.ts'
import { VERDICTS } from '../jobs/review.ts'
import { STATES, TERMINAL_STATES } from '../jobs/states.ts'

/**
 * Schemas of all responses, for the OpenAPI document and for tests that validate real responses. Objects are loose,
 * because fields may be added.
 */
export const stateSchema = z.enum(STATES)

const time = z.iso.datetime()
const count = z.int().min(0)
const sha256 = z.string().regex(/^[0-9a-f]{64}$/)

const artifact = z.looseObject({
  path: z.string().describe('Relative to the workspace'),
  sha256,
  size: count,
})

const summarySchema = z.looseObject({
  job_id: z.uuid(),
  status: stateSchema,
  task: z.string().describe('First line of the task'),
  agent: z.string(),
  runtime: z.string(),
  parent_id: z.string().nullable().optional().describe('The batch that it is a member of'),
  created_at: time,
  started_at: time.nullable(),
  duration_seconds: z.number().nullable(),
  exit_code: z.int().nullable(),
  labels: z.record(z.string(), z.string()).optional(),
})

export const jobPageSchema = z.looseObject({
  jobs: z.array(summarySchema),
  next_cursor: z.string().nullable().describe("Pass it as 'cursor' for the next page"),
})

export const jobSchema = z.looseObject({
  job_id: z.uuid(),
  status: stateSchema,
  task: z.string().describe('First line of the task'),
  agent: z.string(),
  runtime: z.string(),
  machine_id: z.string().nullable(),
  where: z.string().optional().describe('The node that it runs on or ran on, or the VM it is in'),
  parent_id: z.string().nullable(),
  origin: z.string().describe('Who asked: cli, mcp:claude-code, http…'),
  progress: z.string().nullable(),
  runtime_because: z.string().optional().describe('Why this runtime; only in the answer to the submit'),
  output_tail: z.string().optional().describe("The last lines so far, when 'statusMode' is 'streaming'"),
  waits_for: z.array(z.string()).optional().describe('Jobs that must succeed before it starts'),
  queue_position: z.int().nullable().describe('1 is next; only while pending'),
  created_at: time,
  started_at: time.nullable(),
  completed_at: time.nullable(),
  duration_seconds: z.number().nullable(),
  timeout_seconds: z.number(),
  attempts: count,
  cancel_requested: z.boolean(),
  phases: z.record(z.string(), z.number()).describe('Milliseconds of each phase'),
  exit_code: z.int().nullable(),
  signal: z.string().nullable(),
  error: z
    .looseObject({ code: z.string(), message: z.string(), hint: z.string().optional() })
    .nullable()
    .describe('Why it did not succeed'),
  output_bytes: count,
  labels: z.record(z.string(), z.string()),
  deduplicated: z.boolean().optional().describe('An earlier submit had the same idempotency key'),
})

export const resultSchema = jobSchema.extend({
  output: z.string().describe('Head and tail of the output'),
  truncated: z.looseObject({ skipped_bytes: count, head_bytes: count, tail_bytes: count }).nullable(),
  artifacts: z.array(artifact),
  unmatched_artifacts: z.array(z.string()).optional().describe('Globs of the manifest that matched no file'),
  skipped_artifacts: z.array(z.looseObject({ path: z.string(), reason: z.string() })),
  patch: z.looseObject({ sha256, size: count }).nullable(),
  usage: z.looseObject({}).nullable().describe('What an AI agent consumed'),
  isolation: z.array(z.string()),
  limits_hit: z.array(z.string()),
  resources: z
    .array(z.looseObject({ seconds: z.number(), cpu_seconds: z.number(), memory_bytes: count }))
    .nullable()
    .describe('CPU time and memory since the start; null where the runtime cannot tell'),
  members: z
    .array(
      z.looseObject({
        job_id: z.uuid(),
        status: stateSchema,
        exit_code: z.int().nullable(),
        duration_seconds: z.number().nullable(),
        error: z.string().nullable(),
        artifacts: z.array(z.string()),
        has_patch: z.boolean(),
        usage: z.looseObject({}).nullable(),
      }),
    )
    .optional()
    .describe('The jobs of a batch'),
  executed_on: z.object({ node: z.string(), because: z.string() }).nullable(),
  image: z.object({ name: z.string(), digest: z.string() }).nullable(),
})

const piece = z.union([
  z.looseObject({
    stream: z.enum(['stdout', 'stderr']),
    offset: count,
    at: time,
    text: z.string().optional(),
    base64: z.string().optional().describe('Instead of text where the bytes are not UTF-8'),
  }),
  z.looseObject({ skipped: count.describe('Bytes that were dropped here'), offset: count }),
])

export const outputPageSchema = z.looseObject({
  job_id: z.uuid(),
  status: stateSchema,
  pieces: z.array(piece),
  next_cursor: count,
  done: z.boolean().describe('The job is finished and this was the end of its output'),
})

const eventSchema = z.looseObject({
  seq: count,
  job_id: z.uuid(),
  at: time,
  type: z.string(),
  data: z.record(z.string(), z.unknown()),
})

export const eventListSchema = z.looseObject({
  events: z.array(eventSchema),
  next_after: count.describe("Pass it as 'after' to continue"),
})

export const artifactListSchema = z.looseObject({ artifacts: z.array(artifact) })

export const blobSchema = z.looseObject({ sha256, size: count })

export const reviewSchema = z.looseObject({
  job_id: z.uuid(),
  directory: z
    .string()
    .nullable()
    .describe('Where the workspace was copied from, when that is on the computer of the daemon'),
  may_apply: z.boolean().describe('Whether this caller may have the patch applied there'),
  viewed: z.array(z.string()).describe('Files that the reviewer has marked'),
  decision: z
    .looseObject({
      verdict: z.enum(VERDICTS),
      by: z.string(),
      at: time,
      comment: z.string().nullable(),
      directory: z.string().nullable(),
      follow_up: z.string().nullable().describe('The job that continues the work'),
    })
    .nullable(),
})

export const approvalSchema = z.looseObject({
  id: z.string(),
  who: z.string().describe('The client that wants to make the call'),
  call: z.string(),
  params: z.looseObject({}),
  guests: z.array(z.string()).describe('What it reaches'),
  expires_at: time,
  approved: z.boolean(),
})

export const approvalListSchema = z.looseObject({ approvals: z.array(approvalSchema) })

export const daemonListSchema = z.looseObject({
  daemons: z.array(
    z.looseObject({
      daemon_id: z.string(),
      name: z.string(),
      host: z.string(),
      version: z.string(),
      state: z.string().describe('up, draining, stopped, or gone: it did not renew its lease'),
      runtimes: z.record(z.string(), count).describe('Slots of each runtime'),
      key_id: z.string().nullable().describe('Identifies its fleet.key; daemons with the same key take over'),
      jobs: count.describe('Jobs that it runs, or ran when it went'),
      started_at: time,
      lease_until: time,
    }),
  ),
})

export const machineListSchema = z.looseObject({
  machines: z.array(
    z.looseObject({
      machine_id: z.string(),
      runtime: z.string(),
      job_id: z.string().nullable(),
      state: z.string(),
      created_at: time,
      lease_until: time.nullable(),
      problem: z.string().nullable().describe('Why it could not be destroyed, and what to do'),
    }),
  ),
})

const readiness = z.looseObject({
  runtime: z.string(),
  ready: z.boolean(),
  checks: z.array(
    z.looseObject({
      name: z.string(),
      status: z.enum(['ok', 'warning', 'failed']),
      message: z.string(),
      fix: z.string().optional(),
    }),
  ),
})

export const doctorSchema = z.looseObject({
  ready: z.boolean().describe('At least one runtime takes jobs'),
  runtimes: z.array(readiness),
})

export const daemonSchema = z.looseObject({
  pid: count,
  version: z.string(),
  socket: z.string(),
  url: z.string().nullable(),
  home: z.string(),
  started_at: time,
  idle: z.boolean().describe('No job waits or runs'),
  jobs: z.record(stateSchema, count),
  last_day: z.record(z.enum(TERMINAL_STATES), count).describe('Jobs that ended in the last 24 hours'),
})

const quantiles = z.looseObject({ p50: z.number(), p95: z.number() }).nullable()

export const historySchema = z.looseObject({
  samples: z.array(
    z.looseObject({
      at: time.describe('Start of the minute'),
      ended: z.record(z.enum(TERMINAL_STATES), count),
      wait_ms: quantiles.describe('From submit to start, of the jobs that ended in this minute'),
      duration_ms: quantiles,
      slots: z.record(z.string(), count).describe('Jobs that hold a slot, by runtime'),
      pending: count,
    }),
  ),
})

export const settingsSchema = z.looseObject({
  settings: z.array(
    z.looseObject({
      path: z.string(),
      value: z.unknown().optional(),
      origin: z.string().describe('default, a variable of the environment, or the file'),
    }),
  ),
})

export const readySchema = z.looseObject({
  ready: z.boolean(),
  store: z.looseObject({ ready: z.boolean(), message: z.string() }),
  runtimes: z.array(readiness),
})

export const errorSchema = z.looseObject({
  error: z.looseObject({
    code: z.enum(Object.keys(ERROR_TABLE) as [ErrorCode, ...ErrorCode[]]),
    message: z.string().describe('One sentence that names the value'),
    hint: z.string().optional().describe('What to do next'),
    retryable: z.boolean(),
    details: z.unknown().optional(),
  }),
})
