import type { Socket } from 'node:net'
import type { ErrorBody } from '../../jobs/errors.ts'
import type { SkippedArtifact, Usage } from '../../jobs/job.ts'
import type { CommandSpec, StopReason } from '../../ports.ts'
import type { KeepLimits } from '../../runner/keep-limits.ts'
import type { CgroupRoot } from './cgroups.ts'

/** Messages between the daemon and a shim: one JSON object a line, over a Unix socket in a private directory. */
export const PROTOCOL_VERSION = 1

export interface MachineLimits {
  readonly memory: number
  readonly disk: number
  readonly cpu: number
  readonly processes: number
}

/** One job as sent to a shim. It contains secrets and must not be written to disk. */
export interface StartSpec extends CommandSpec {
  readonly machineId: string
  readonly jobId: string
  /** Private directory for the log and the result. */
  readonly dir: string
  readonly limits: MachineLimits
  readonly lifecycle: 'ephemeral' | 'persistent'
  /** The job runs in a kept machine, which must exist. */
  readonly continues: boolean
  /** Tar files on this computer to unpack first, in order. */
  readonly inputs: readonly { readonly path: string; readonly into: 'workspace' | 'root' }[]
  /** The tar that the workspace started from, when a patch is wanted. */
  readonly patchBase: string | null
  readonly wantsPatch: boolean
  /** Files of the manifest, relative to the workspace. They are not part of the patch. */
  readonly givenFiles: readonly string[]
  readonly artifacts: readonly string[]
  readonly keep: KeepLimits
  readonly graceSeconds: number
}

/** Arguments of a shim. Other processes can read them, so they contain no secrets. */
export interface ShimConfig {
  readonly id: string
  readonly dir: string
  readonly runtime: 'sandbox' | 'host'
  /** How to build the sandbox. The daemon's probe decides. */
  readonly backend: Backend
  readonly cgroup: CgroupRoot | null
  /** Prefix of cgroup names; identifies the daemon's home. */
  readonly cgroupPrefix: string
  /** User id of the machine when the daemon is root. */
  readonly uid: number | null
  /** Limits of the machine booted ahead of need; null for none. */
  readonly warm: MachineLimits | null
  readonly maxJobs: number
  readonly idleSeconds: number
}

export type Backend =
  | {
      readonly type: 'bwrap'
      readonly path: string
      readonly disableUserns: boolean
      /** Whether all writable directories share one file system, with one limit of size and files. */
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
  /** Sent by a restarted daemon. The shim answers `done` when the job has ended. */
  | { readonly type: 'attach'; readonly jobId: string }
  /** Kill the machine and everything in it. */
  | { readonly type: 'destroy'; readonly machineId: string }
  /** Exit when no machine is held. */
  | { readonly type: 'retire' }

export type FromShim =
  | ShimHello
  | { readonly type: 'refused'; readonly jobId: string; readonly error: ErrorBody }
  | { readonly type: 'started'; readonly jobId: string; readonly at: number }
  /** The log has new frames. */
  | { readonly type: 'log'; readonly jobId: string }
  | { readonly type: 'alive'; readonly jobId: string }
  /** A null result means that it is in the job's directory. */
  | { readonly type: 'done'; readonly jobId: string; readonly result: ShimResult | null }
  | { readonly type: 'gone'; readonly machineId: string }
  | { readonly type: 'idle' }
  /** The shim takes no more jobs. */
  | { readonly type: 'leaving' }

export interface ShimHello {
  readonly type: 'hello'
  readonly version: number
  readonly id: string
  readonly pid: number
  readonly uid: number | null
  readonly machineId: string | null
  readonly jobId: string | null
  /** A finished job whose result is not on disk yet. */
  readonly unsavedJobId?: string
  readonly runtime: 'sandbox' | 'host'
}

/** Content of `exit.json`. */
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

/** A start message can contain an environment of megabytes. Longer messages are invalid. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024

export const sendMessage = (socket: Socket, message: ToShim | FromShim): void => {
  if (socket.destroyed) return
  const line = Buffer.from(`${JSON.stringify(message)}\n`)
  // Wipe the buffer after sending: it may contain secrets.
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
