import { z } from 'zod'
import { ERROR_TABLE, type ErrorCode } from '../jobs/errors.ts'

/** An error as it crosses a process. An unknown code of another version becomes `internal`. */
export const errorBody = z.object({
  code: z
    .custom<ErrorCode>(code => typeof code === 'string' && Object.hasOwn(ERROR_TABLE, code))
    .catch('internal'),
  message: z.string(),
  hint: z.string().exactOptional(),
  retryable: z.boolean(),
  details: z.unknown().exactOptional(),
})

/** A finished file in the directory of a run. */
const collectedFile = z.object({
  path: z.string(),
  sha256: z.string(),
  size: z.number(),
  /** Name within the directory. */
  file: z.string(),
})

export const runExit = z.object({
  code: z.number().nullable(),
  signal: z.string().nullable(),
  stopped: z.enum(['cancel', 'timeout', 'stale']).nullable(),
  startedAt: z.number(),
  endedAt: z.number(),
  outputBytes: z.number(),
  artifacts: z.array(collectedFile).readonly(),
  skippedArtifacts: z.array(z.object({ path: z.string(), reason: z.string() })).readonly(),
  patch: collectedFile.nullable(),
  usage: z
    .object({
      inputTokens: z.number(),
      outputTokens: z.number(),
      cacheReadTokens: z.number(),
      costUsd: z.number().nullable(),
      turns: z.number().nullable(),
      model: z.string().nullable(),
    })
    .nullable(),
  isolation: z.array(z.string()).readonly(),
  limitsHit: z.array(z.string()).readonly(),
  agentError: z.string().nullable(),
  phases: z.record(z.string(), z.number()),
  /** Absent from shims that do not measure it. */
  resources: z
    .array(z.object({ at: z.number(), cpuMs: z.number(), memory: z.number() }))
    .readonly()
    .exactOptional(),
})

/** How a run ended, as a shim reports and stores it. */
export const runResult = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('exit'), exit: runExit }),
  z.object({ kind: z.literal('not-started'), error: errorBody }),
  z.object({ kind: z.literal('lost'), error: errorBody }),
])

export type CollectedFile = z.output<typeof collectedFile>
export type RunExit = z.output<typeof runExit>
export type RunResult = z.output<typeof runResult>
