import type { Socket } from 'node:net'
import type { ErrorBody } from '../../jobs/errors.ts'
import type { SkippedArtifact, Usage } from '../../jobs/job.ts'
import type { CommandSpec, StopReason } from '../../ports.ts'
import type { CgroupRoot } from './cgroups.ts'

/** Messages between the daemon and a shim: one JSON object a line, over a Unix socket in a private directory. */
export const PROTOCOL_VERSION = 1

export interface KeepLimits {
  readonly head: number
  readonly tail: number
  readonly artifactFiles: number
  readonly artifactBytes: number
  readonly patchBytes: number
}

export interface MachineLimits {
  readonly memory: number
  readonly disk: number
  readonly cpu: number
  readonly processes: number
}

/** One job as a shim gets it. It holds secrets: it is never written anywhere. */
export interface StartSpec extends CommandSpec {
  readonly machineId: string
  readonly jobId: string
  /** Private directory for the log and the result. */
  readonly dir: string
  readonly limits: MachineLimits
  readonly lifecycle: 'ephemeral' | 'persistent'
  /** Runs in a machine that must exist already. */
  readonly continues: boolean
  /** Tar files on this computer to unpack first, in order. */
  readonly inputs: readonly { readonly path: string; readonly into: 'workspace' | 'root' }[]
  /** The tar the workspace began as, when its changes are wanted. */
  readonly patchBase: string | null
  readonly wantsPatch: boolean
  /** Files of the manifest, relative to the workspace: no part of its changes. */
  readonly givenFiles: readonly string[]
  readonly artifacts: readonly string[]
  readonly keep: KeepLimits
  readonly graceSeconds: number
}

/** What a shim is started with: visible to other processes, so nothing secret. */
export interface ShimConfig {
  readonly id: string
  readonly dir: string
  readonly runtime: 'sandbox' | 'host'
  /** How the sandbox is built; decided by the daemon's probe. */
  readonly backend: Backend
  readonly cgroup: CgroupRoot | null
  /** Prefix of the names of its cgroups: tells whose they are. */
  readonly cgroupPrefix: string
  /** The id the machine runs under when the daemon is root. */
  readonly uid: number | null
  /** Limits of the machine that is booted ahead; null: none is. */
  readonly warm: MachineLimits | null
  readonly maxJobs: number
  readonly idleSeconds: number
}

export type Backend =
  | {
      readonly type: 'bwrap'
      readonly path: string
      readonly disableUserns: boolean
      /** Whether everything a job writes lies in one file system, with one size and number of files. */
      readonly oneDisk: boolean
    }
  | { readonly type: 'unshare'; readonly seccompLoader: 'setpriv' | 'perl' | null }
  | { readonly type: 'none' }

export type ToShim =
  | { readonly type: 'start'; readonly spec: StartSpec }
  | {
      readonly type: 'stop'
      readonly jobId: string
      readonly kind: StopReason['kind']
      readonly graceSeconds: number
    }
  /** From a daemon that found the job again: `done` is the answer when it is over. */
  | { readonly type: 'attach'; readonly jobId: string }
  /** End the machine, whatever runs in it. */
  | { readonly type: 'destroy'; readonly machineId: string }
  /** Leave when nothing is held. */
  | { readonly type: 'retire' }

export type FromShim =
  | ShimHello
  | { readonly type: 'refused'; readonly jobId: string; readonly error: ErrorBody }
  | { readonly type: 'started'; readonly jobId: string; readonly at: number }
  /** There is more in the log. */
  | { readonly type: 'log'; readonly jobId: string }
  | { readonly type: 'alive'; readonly jobId: string }
  /** Without a result it is in the job's directory. */
  | { readonly type: 'done'; readonly jobId: string; readonly result: ShimResult | null }
  | { readonly type: 'gone'; readonly machineId: string }
  | { readonly type: 'idle' }
  /** It takes no more jobs. */
  | { readonly type: 'leaving' }

export interface ShimHello {
  readonly type: 'hello'
  readonly version: number
  readonly id: string
  readonly pid: number
  readonly uid: number | null
  readonly machineId: string | null
  readonly jobId: string | null
  /** A job that is over, but whose result the disk has not taken yet. */
  readonly unsavedJobId?: string
  readonly runtime: 'sandbox' | 'host'
}

/** What a shim leaves in `exit.json`. */
export type ShimResult =
  | { readonly kind: 'exit'; readonly exit: ShimExit }
  | { readonly kind: 'not-started' | 'lost'; readonly error: ErrorBody }

export interface ShimExit {
  readonly code: number | null
  readonly signal: string | null
  readonly stopped: StopReason['kind'] | null
  readonly startedAt: number
  readonly endedAt: number
  readonly outputBytes: number
  readonly artifacts: readonly CollectedFile[]
  readonly skippedArtifacts: readonly SkippedArtifact[]
  readonly patch: CollectedFile | null
  readonly usage: Usage | null
  readonly isolation: readonly string[]
  readonly limitsHit: readonly string[]
  readonly agentError: string | null
  readonly phases: Readonly<Record<string, number>>
}

/** A finished file in the job's directory. */
export interface CollectedFile {
  readonly path: string
  readonly sha256: string
  readonly size: number
  /** Name within the job's directory. */
  readonly file: string
}

/** A start message can carry an environment of megabytes; more than this is no message of ours. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024

export const sendMessage = (socket: Socket, message: ToShim | FromShim): void => {
  if (socket.destroyed) return
  const line = Buffer.from(`${JSON.stringify(message)}\n`)
  // It may hold secrets: the buffer is wiped when it has been sent.
  socket.write(line, () => line.fill(0))
}

export const onMessages = <T extends ToShim | FromShim>(
  socket: Socket,
  handle: (message: T) => void,
): void => {
  let held: Buffer[] = []
  let bytes = 0
  socket.on('data', (chunk: Buffer) => {
    let from = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      const parts = [...held, chunk.subarray(from, end)]
      const line = Buffer.concat(parts)
      held = []
      bytes = 0
      from = end + 1
      const message = JSON.parse(line.toString('utf8')) as T
      for (const part of [...parts, line]) part.fill(0)
      handle(message)
    }
    if (from >= chunk.length) return
    held.push(chunk.subarray(from))
    bytes += chunk.length - from
    if (bytes > MAX_MESSAGE_BYTES) socket.destroy()
  })
}
