import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Blobs, Provider } from '../../ports.ts'
import { type KeepLimits, keepLimits } from '../../runner/keep-limits.ts'
import type { MachineLimits } from '../../runner/shim-start.ts'
import { findCgroupRoot, removeStaleCgroups } from '../local/cgroup-root.ts'
import { killByEnvironment } from '../local/kill-by-environment.ts'
import { createLocalProvider } from '../local/local-provider.ts'
import { createShimPool } from '../local/shim-pool.ts'
import { PROCESSORS } from '../local/this-computer.ts'
import { checkSandbox } from './check-sandbox.ts'
import { fitsSandbox } from './fits-sandbox.ts'
import { SANDBOX_VARIABLE } from './plan-sandbox.ts'
import { type Probe, probeBackend } from './probe-backend.ts'
import { freeUids, uidRange } from './sandbox-uids.ts'

export interface SandboxOptions {
  /** Private to this daemon; must be on the same disk as the blobs. */
  readonly stateDir: string
  readonly blobs: Blobs
  /** Maximum number of concurrent jobs. Default: twice the cores. */
  readonly limit?: number
  readonly defaults?: Partial<MachineLimits>
  readonly keep?: Partial<KeepLimits>
  /** Seconds between SIGTERM and SIGKILL. */
  readonly graceSeconds?: number
  /** Number of machines to boot ahead of need. Default: one per core. */
  readonly spare?: number
  /** Free shims beyond one stop after this time, checked four times as often. Default: 45. */
  readonly idleSeconds?: number
  /** Forces this way of building sandboxes. */
  readonly backend?: 'bwrap' | 'unshare'
  /** False to use rlimits only, as on computers where no cgroup can be created. */
  readonly cgroups?: boolean
  log?(message: string, fields: Record<string, unknown>): void
}

const MIB = 2 ** 20

const SANDBOX_DEFAULTS: MachineLimits = {
  memory: 2048 * MIB,
  disk: 1024 * MIB,
  cpu: PROCESSORS,
  processes: 512,
}

/** Runs jobs in Linux namespaces on this computer. */
export const createSandboxProvider = (options: SandboxOptions): Provider => {
  const defaults = { ...SANDBOX_DEFAULTS, ...options.defaults }
  const keep = keepLimits(options.keep)
  const idleSeconds = options.idleSeconds ?? 45
  const dir = join(options.stateDir, 'sandbox')
  const uids = uidRange(options.stateDir)
  const cgroup = options.cgroups === false ? { root: null, problem: 'switched off' } : findCgroupRoot()
  const cgroupPrefix = `deputy-${createHash('sha256').update(options.stateDir).digest('hex').slice(0, 8)}-`
  let probing: Promise<Probe> | undefined
  let sandboxProblem: string | null = null
  const probe = () => {
    probing ??= probeBackend({
      force: options.backend,
      prefix: `${cgroupPrefix}trial-`,
      uid: uids?.first ?? null,
      signal: AbortSignal.timeout(20_000),
    }).then(found => {
      sandboxProblem = found.sandboxProblem
      return found
    })
    return probing
  }

  const pool = createShimPool({
    dir: join(dir, 'shims'),
    spare: 1,
    idleSeconds,
    log: options.log ?? (() => {}),
    onLost: (lost, living) => {
      if (cgroup.root !== null) void removeStaleCgroups(cgroup.root, cgroupPrefix, living)
      for (const id of lost) void killByEnvironment(SANDBOX_VARIABLE, `${cgroupPrefix}${id}-`, false)
    },
    chooseUids: (used, count) => freeUids(uids, used, count),
    config: async () => ({
      runtime: 'sandbox',
      backend: (await probe()).backend,
      cgroup: cgroup.root,
      cgroupPrefix,
      warm: defaults,
      spareMachines: options.spare ?? PROCESSORS,
      maxJobs: 5000,
      idleSeconds,
    }),
  })
  const provider = createLocalProvider({
    name: 'sandbox',
    limit: options.limit ?? 2 * PROCESSORS,
    runsDir: join(dir, 'runs'),
    blobs: options.blobs,
    pool,
    defaults,
    keep,
    graceSeconds: options.graceSeconds ?? 5,
    filesLayout: 'root',
    fits: manifest =>
      sandboxProblem === null
        ? fitsSandbox(manifest, defaults)
        : { ok: false, reason: `sandboxes do not start here (run: deputy doctor): ${sandboxProblem}` },
    check: async () => {
      probing = undefined // The missing program may have been installed.
      return checkSandbox({ probe: await probe(), cgroup, uids, defaults })
    },
  })
  return {
    ...provider,
    close: async () => {
      // A test sandbox that is interrupted while it boots could leave a process behind.
      await probing?.catch(() => {})
      await provider.close()
    },
  }
}
