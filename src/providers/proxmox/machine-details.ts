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
  /** As it was asked for. */
  readonly templateName: string
  readonly cores: number
  /** MiB */
  readonly memory: number
  /** SHA-256 of the token the machine identifies itself with. */
  readonly tokenHash: string
  /** Ids of clones whose fate was never learnt; they are looked for when the machine is destroyed. */
  readonly doubtful?: readonly number[]
  /** The task that makes the clone with this id. */
  readonly cloneTask?: string | undefined
  /** How it gets its runner. */
  readonly injection?: 'iso' | 'http' | 'agent'
  /** The volume of the seed image. */
  readonly seed?: string
  /** Where that is, once the machine has moved away from it. */
  readonly seedNode?: string
  readonly seedName?: string
  readonly ready?: boolean
  readonly network?: string
  /** Whether the rules on the VM have effect, as far as it could be learnt. */
  readonly filter?: 'on' | 'off' | 'unknown'
  readonly phases?: Readonly<Record<string, number>>
  /** The job whose command has started in it. */
  readonly started?: { readonly jobId: string; readonly at: number }
  /** How often that job says that it lives, as its order has it. */
  readonly heartbeatSeconds?: number
  /** How that job's output is read, sealed with the machine's token. */
  readonly reading?: string
  /** What of its output was held back when so much of it had been taken; sealed, too. */
  readonly held?: readonly { readonly position: number; readonly sealed: string }[]
  /** The domains that its job may reach, and the hash of the token with which it asks for them. */
  readonly egress?: { readonly tokenHash: string; readonly domains: readonly string[] } | null
  /** The files of a job that has sent everything, kept until it reports its end. */
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

/** While an id is being fought for there is none. */
export type Known = Partial<Omit<Details, 'vmid'>> & { readonly vmid?: number | undefined }

export const detailsOf = (machine: Machine): Known => machine.details as Known

/** What is to be remembered of a machine that is on another node now; its seed image stays where it is. */
export const movedTo = (
  { node, seed, seedNode = node }: Details,
  now: string,
): Pick<Details, 'node' | 'seedNode'> => ({
  node: now,
  ...(seed === undefined ? {} : { seedNode }),
})
