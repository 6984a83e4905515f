import { z } from 'zod'
import type { ExitReport } from '../../guest/protocol.ts'
import { AppError } from '../../jobs/errors.ts'
import { redactNames } from '../../output/redact-names.ts'
import type { Machine } from '../../ports.ts'
import type { Collected } from '../../runner/collect.ts'

/** The stored record of a machine. It holds no secret: only the hash of the token. */
export interface Details {
  readonly vmid: number
  /** The node it was last seen on; a VM may be migrated. */
  readonly node: string
  readonly template: number
  /** As requested. */
  readonly templateName: string
  readonly cores: number
  /** MiB */
  readonly memory: number
  /** SHA-256 of the token the machine identifies itself with. */
  readonly tokenHash: string
  /** Ids of clones whose result is unknown; they are looked for when the machine is destroyed. */
  readonly doubtful?: readonly number[]
  /** The task that makes the clone with this id. */
  readonly cloneTask?: string | undefined
  /** How the machine gets its runner. */
  readonly injection?: 'iso' | 'http' | 'agent'
  /** The volume of the seed image. */
  readonly seed?: string
  /** The node of the seed image, if the machine has moved to another node. */
  readonly seedNode?: string
  readonly seedName?: string
  readonly ready?: boolean
  readonly network?: string
  /** Whether the firewall rules of the VM have effect. */
  readonly filter?: 'on' | 'off' | 'unknown'
  readonly phases?: Readonly<Record<string, number>>
  /** The job whose command has started in it. */
  readonly started?: { readonly jobId: string; readonly at: number }
  /** Heartbeat interval of that job. */
  readonly heartbeatSeconds?: number
  /** Secrets and format of that job's output, sealed with the machine's token. */
  readonly reading?: string
  /** Output that was held back at a position, sealed with the machine's token. */
  readonly held?: readonly { readonly position: number; readonly sealed: string }[]
  /** The domains that its job may reach, and the hash of the job's proxy token. */
  readonly egress?: { readonly tokenHash: string; readonly domains: readonly string[] } | null
  /** The files of a job, once all have arrived, until it reports its exit status. */
  readonly collected?: CollectedFiles & { readonly jobId: string }
  readonly finished?: Finished
}

export interface CollectedFiles {
  readonly artifacts: readonly { path: string; sha256: string; size: number }[]
  readonly skipped: readonly { path: string; reason: string }[]
  readonly patch: { readonly sha256: string; readonly size: number } | null
}

/** The record of what was collected. File names are shown as output is, so secrets in them are redacted. */
export const toRecord = (
  { artifacts, skippedArtifacts, patch }: Collected,
  redact: (text: string) => string,
): CollectedFiles => ({
  artifacts: redactNames(artifacts, redact),
  skipped: redactNames(skippedArtifacts, redact),
  patch,
})

/** Stored before the result is acknowledged to the machine. */
export interface Finished extends CollectedFiles {
  readonly jobId: string
  readonly report: ExitReport
  readonly endedAt: number
}

/** There is no id before the clone has succeeded. */
export type Known = Partial<Omit<Details, 'vmid'>> & { readonly vmid?: number | undefined }

/** The details of a machine as far as they are recorded. */
export const detailsOf = (machine: Machine): Known => parse(knownSchema, machine)

/** The details of a machine that was provisioned. */
export const completeDetailsOf = (machine: Machine): Details => parse(detailsSchema, machine)

const parse = <T>(schema: z.ZodType<T>, { id, details }: Machine): T => {
  const parsed = schema.safeParse(details)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new AppError(
    'internal',
    `The record of machine ${id} is invalid: ${issue?.path.join('.')}: ${issue?.message}`,
  )
}

const blob = z.object({ sha256: z.string(), size: z.number() })
const collected = z.object({
  jobId: z.string(),
  artifacts: z.array(blob.extend({ path: z.string() })),
  skipped: z.array(z.object({ path: z.string(), reason: z.string() })),
  patch: blob.nullable(),
})

const known = z.object({
  vmid: z.number().optional(),
  node: z.string().exactOptional(),
  template: z.number().exactOptional(),
  templateName: z.string().exactOptional(),
  cores: z.number().exactOptional(),
  memory: z.number().exactOptional(),
  tokenHash: z.string().exactOptional(),
  doubtful: z.array(z.number()).exactOptional(),
  cloneTask: z.string().optional(),
  injection: z.enum(['iso', 'http', 'agent']).exactOptional(),
  seed: z.string().exactOptional(),
  seedNode: z.string().exactOptional(),
  seedName: z.string().exactOptional(),
  ready: z.boolean().exactOptional(),
  network: z.string().exactOptional(),
  filter: z.enum(['on', 'off', 'unknown']).exactOptional(),
  phases: z.record(z.string(), z.number()).exactOptional(),
  started: z.object({ jobId: z.string(), at: z.number() }).exactOptional(),
  heartbeatSeconds: z.number().exactOptional(),
  reading: z.string().exactOptional(),
  held: z.array(z.object({ position: z.number(), sealed: z.string() })).exactOptional(),
  egress: z
    .object({ tokenHash: z.string(), domains: z.array(z.string()) })
    .nullable()
    .exactOptional(),
  collected: collected.exactOptional(),
  finished: collected
    .extend({ report: z.custom<ExitReport>(value => typeof value === 'object'), endedAt: z.number() })
    .exactOptional(),
})

const knownSchema: z.ZodType<Known> = known
const detailsSchema: z.ZodType<Details> = known.extend({
  vmid: z.number(),
  node: z.string(),
  template: z.number(),
  templateName: z.string(),
  cores: z.number(),
  memory: z.number(),
  tokenHash: z.string(),
})

/** The details to store after a machine was migrated; its seed image stays on the first node. */
export const movedTo = (
  { node, seed, seedNode = node }: Details,
  now: string,
): Pick<Details, 'node' | 'seedNode'> => ({
  node: now,
  ...(seed === undefined ? {} : { seedNode }),
})
