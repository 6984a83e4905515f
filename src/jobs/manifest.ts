import { z } from 'zod'
import { globProblem } from './artifact-globs.ts'
import { parseDuration } from './durations.ts'
import { AppError } from './errors.ts'
import { STATUS_MODES } from './job.ts'
import { LIMITS } from './limits.ts'
import { didYouMean } from './nearest.ts'
import { pathProblem } from './paths.ts'
import { isRecord, valueAt } from './records.ts'
import { SIZE_PATTERN } from './sizes.ts'

/**
 * The manifest schema. It is strict, so a misspelt key is an error and not a silent default. The MCP tool, the REST
 * API, the CLI and the reference are all derived from it.
 */
const text = (max: number) =>
  z
    .string()
    .max(max)
    .refine(value => !value.includes('\0'), 'contains a NUL byte')

const envName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'is not a name for an environment variable')
const size = z.string().regex(SIZE_PATTERN, "is not a size such as '512M' or '2G'")
const DOMAIN =
  /^(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(:\d{1,5})?$/i
const IMAGE =
  /^(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::\d{1,5})?\/)?[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/
const glob = text(LIMITS.pathBytes)
  .min(1)
  .superRefine((value, context) => {
    const problem = globProblem(value)
    if (problem) context.addIssue({ code: 'custom', message: problem, input: value })
  })
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

const file = z
  .strictObject({
    path: z.string().describe('Relative to the workspace /work, or below /tmp'),
    text: z.string().optional(),
    content: z.string().optional().describe('The same in base64'),
    mode: z
      .string()
      .regex(/^0?[0-7]{3}$/)
      .optional()
      .describe("Octal, such as '755'"),
  })
  .superRefine((value, context) => {
    const problem = pathProblem(value.path)
    if (problem) context.addIssue({ code: 'custom', path: ['path'], message: problem, input: value.path })
    if ((value.text === undefined) === (value.content === undefined))
      context.addIssue({
        code: 'custom',
        message: "needs exactly one of 'text' and 'content'",
        input: value.path,
      })
    if (value.content !== undefined && !BASE64.test(value.content.replace(/\s/g, '')))
      context.addIssue({
        code: 'custom',
        path: ['content'],
        message: "is not base64; use 'text' for plain text",
        input: '',
      })
  })

export const manifestSchema = z.strictObject({
  task: text(LIMITS.taskBytes).min(1).describe('Shell script, or prompt of an AI agent'),
  agentType: z
    .string()
    .regex(/^[a-z][a-z0-9_-]{0,63}$/)
    .default('script')
    .describe('script | claude | custom | a configured preset'),
  agent: z
    .strictObject({
      command: z
        .union([text(LIMITS.taskBytes).min(1), z.array(text(LIMITS.taskBytes)).min(1).max(1024)])
        .optional()
        .describe('Shell command line, or an argv array'),
      claudeModel: z
        .string()
        .regex(/^[A-Za-z0-9][A-Za-z0-9._:@/[\]-]{0,127}$/)
        .optional(),
    })
    .optional(),
  agents: z
    .number()
    .int()
    .min(2)
    .max(LIMITS.agents)
    .optional()
    .describe('Give the task to so many agents; the job is a batch of them'),
  files: z.array(file).max(LIMITS.files).optional().describe('To put into the workspace'),
  workspace: z
    .strictObject({
      path: z.string().startsWith('/', 'must be absolute').optional().describe('Local directory to copy in'),
      blob: z
        .string()
        .regex(/^[0-9a-f]{64}$/, 'is not the sha256 of an uploaded tar')
        .optional(),
      patch: z.boolean().default(false).describe('Return the changes as a patch'),
    })
    .refine(
      value => value.path === undefined || value.blob === undefined,
      "takes one of 'path' and 'blob', not both",
    )
    .optional(),
  needs: z
    .array(z.uuid())
    .max(LIMITS.needs)
    .optional()
    .describe('Jobs that must succeed first; their artifacts are in needs/<job_id>'),
  env: z.record(envName, text(LIMITS.envValueBytes)).optional(),
  secrets: z
    .array(envName)
    .max(LIMITS.secrets)
    .optional()
    .describe('Names of secrets to put into the environment'),
  artifacts: z.array(glob).max(LIMITS.artifactGlobs).optional().describe('Globs to bring back'),
  resources: z
    .strictObject({
      cpu: z.number().min(0.1).max(32).optional(),
      memory: size.optional().describe("Such as '512M'"),
      disk: size.optional(),
    })
    .optional(),
  timeout: z.number().min(1).max(LIMITS.timeoutSeconds).optional().describe('Seconds'),
  queueTimeout: z
    .number()
    .min(1)
    .max(LIMITS.queueSeconds)
    .optional()
    .describe('Seconds it may wait to start, then it fails'),
  network: z
    .union([
      z.enum(['none', 'full']),
      z.array(z.string().regex(DOMAIN, 'is not a domain')).min(1).max(LIMITS.domains),
    ])
    .optional()
    .describe("none (default) | full | allowed domains, '*.example.org' works"),
  runtime: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,31}$/)
    .default('auto'),
  isolation: z.enum(['vm']).optional(),
  requires: z
    .strictObject({
      os: z.string().min(1).max(64).optional(),
      arch: z.string().min(1).max(64).optional(),
      capabilities: z.array(z.string().min(1).max(64)).max(32).optional(),
      labels: z.record(z.string().min(1).max(64), z.string().max(256)).optional(),
      node: z.string().min(1).max(253).optional(),
    })
    .optional(),
  lifecycle: z
    .enum(['ephemeral', 'persistent'])
    .default('ephemeral')
    .describe('persistent keeps the machine'),
  lease: z
    .number()
    .int()
    .min(60)
    .max(LIMITS.leaseSeconds)
    .optional()
    .describe('Seconds a persistent machine is kept'),
  machine: z.uuid().optional().describe('Run in this kept machine'),
  vmTemplate: z.string().min(1).max(128).optional(),
  image: z.string().max(512).regex(IMAGE, "is not an image such as 'node:22'").optional(),
  pull: z.enum(['missing', 'always', 'never']).optional(),
  platform: z
    .string()
    .regex(/^linux\/[a-z0-9]+(\/v\d+)?$/, "is not a platform such as 'linux/arm64'")
    .optional(),
  gpus: z.coerce
    .string()
    .refine(value => /^(all|[1-9]\d?)$/.test(value), "is neither 'all' nor a number of GPUs")
    .optional(),
  statusMode: z.enum(STATUS_MODES).default('simple'),
  retries: z.number().int().min(0).max(10).default(2).describe('For failures before the command started'),
  retryStarted: z.boolean().default(false).describe('Also run again a command that had started'),
  priority: z.number().int().min(-100).max(100).default(0).describe('Higher first'),
  labels: z
    .record(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_./-]{0,62}$/, 'is not a label name'), text(256))
    .refine(value => Object.keys(value).length <= LIMITS.labels, `has more than ${LIMITS.labels} labels`)
    .optional(),
  idempotency_key: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('Send the same key again when retrying this submit'),
})

export type ManifestInput = z.input<typeof manifestSchema>
export type Manifest = z.output<typeof manifestSchema>

/** Validates a manifest once, where it enters. Throws an AppError that names every problem. */
export const parseManifest = (input: unknown): Manifest => {
  if (!isRecord(input)) throw invalid([`the manifest is ${describe(input)}, not an object`])
  const parsed = manifestSchema.safeParse(withSeconds(input))
  if (!parsed.success) throw invalid(parsed.error.issues.flatMap(issue => explain(issue, input)))
  const problems = crossChecks(parsed.data)
  if (problems.length > 0) throw invalid(problems)
  return parsed.data
}

/** Times may be written as on the command line: `timeout: 5m`. */
const withSeconds = (input: object): object => {
  const times = ['timeout', 'queueTimeout', 'lease'].flatMap(key => {
    const value: unknown = Reflect.get(input, key)
    const seconds = typeof value === 'string' ? parseDuration(value) : undefined
    return seconds === undefined ? [] : [[key, seconds] as const]
  })
  return times.length === 0 ? input : { ...input, ...Object.fromEntries(times) }
}

const crossChecks = (manifest: Manifest): string[] => {
  const problems: string[] = []
  if (manifest.agentType === 'custom' && manifest.agent?.command === undefined)
    problems.push("'agent.command' is required when 'agentType' is 'custom'")
  if (Object.keys(manifest.env ?? {}).length > LIMITS.env)
    problems.push(`'env' has more than ${LIMITS.env} variables`)
  for (const name of manifest.secrets ?? [])
    if (manifest.env !== undefined && Object.hasOwn(manifest.env, name))
      problems.push(`'${name}' is both in 'env' and in 'secrets'`)
  if (manifest.machine !== undefined && manifest.workspace !== undefined)
    problems.push("'workspace' cannot be replaced in a kept machine: leave it out, or leave out 'machine'")
  if (manifest.machine !== undefined && manifest.needs !== undefined)
    problems.push("'needs' puts files into a new workspace: leave it out, or leave out 'machine'")
  if (manifest.machine !== undefined && manifest.agents !== undefined)
    problems.push("'agents' gives each agent a machine: leave it out, or leave out 'machine'")
  if (manifest.lease !== undefined && manifest.lifecycle !== 'persistent')
    problems.push("'lease' needs 'lifecycle' to be 'persistent'")
  if (new TextEncoder().encode(manifest.task).length > LIMITS.taskBytes)
    problems.push(`'task' is longer than ${LIMITS.taskBytes} bytes: put it into a file of 'files'`)
  return problems
}

const invalid = (problems: string[]): AppError =>
  new AppError('invalid', `Invalid manifest: ${problems.slice(0, 8).join('; ')}.`, {
    hint: 'Fix these keys and submit again. The smallest manifest is {"task": "echo hello"}.',
    details: { problems },
  })

const explain = (issue: z.core.$ZodIssue, input: unknown): string[] => {
  const at = issue.path.map(String).join('.')
  if (issue.code === 'unrecognized_keys') {
    const known = knownKeys(issue.path)
    return issue.keys.map(
      key => `unknown key '${at ? `${at}.` : ''}${key}'${elsewhere(key) ?? didYouMean(key, known)}`,
    )
  }
  const value = valueAt(input, issue.path)
  const shown = value === undefined ? '' : ` (got ${describe(value)})`
  return [
    `${at ? `'${at}'` : 'the manifest'} ${value === undefined && isMissing(issue) ? 'is required' : message(issue)}${shown}`,
  ]
}

/** `memory: 2G` at the top belongs into `resources`. */
const elsewhere = (key: string): string | undefined => {
  const section = ['resources', 'requires', 'agent', 'workspace'].find(name =>
    knownKeys([name]).includes(key),
  )
  return section && `, which belongs into '${section}'`
}

const isMissing = (issue: z.core.$ZodIssue): boolean =>
  issue.code === 'invalid_type' || issue.code === 'invalid_union'

const message = (issue: z.core.$ZodIssue): string => {
  if (issue.code === 'invalid_key') return issue.issues[0]?.message ?? issue.message
  if (issue.code === 'custom' || issue.code === 'invalid_format') return issue.message
  return issue.message.replace(/^\w/, first => first.toLowerCase())
}

/** The keys of the schema object at a path, with optional and default wrappers removed. */
const knownKeys = (path: readonly PropertyKey[]): readonly string[] => {
  let schema: unknown =
    path.length === 0 ? manifestSchema : manifestSchema.shape[String(path[0]) as keyof Manifest]
  for (let depth = 0; depth < 5; depth++) {
    if (schema instanceof z.ZodObject) return Object.keys(schema.shape)
    if (schema instanceof z.ZodArray) schema = schema.element
    else if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) schema = schema.unwrap()
    else return []
  }
  return []
}

/** Describes a value in a message, shortened. */
const describe = (value: unknown): string => {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'an object'
  const shown = JSON.stringify(value) ?? String(value)
  return shown.length > 60 ? `${shown.slice(0, 57)}…` : shown
}
