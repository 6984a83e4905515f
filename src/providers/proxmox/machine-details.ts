import type { ExitReport } from '../../guest/protocol.ts'
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
  /** How it gets its runner. */
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

export const detailsOf = (machine: Machine): Known => machine.details as Known

/** The details to store after a machine was migrated; its seed image stays on the first node. */
export const movedTo = (
  { node, seed, seedNode = node }: Details,
  now: string,
): Pick<Details, 'node' | 'seedNode'> => ({
  node: now,
  ...(seed === undefined ? {} : { seedNode }),
})
