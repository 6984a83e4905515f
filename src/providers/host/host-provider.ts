import { userInfo } from 'node:os'
import { join } from 'node:path'
import type { Manifest } from '../../jobs/manifest.ts'
import { fileTarget } from '../../jobs/paths.ts'
import type { Blobs, Fit, Provider, Readiness } from '../../ports.ts'
import { type KeepLimits, keepLimits } from '../../runner/keep-limits.ts'
import type { MachineLimits } from '../../runner/shim-start.ts'
import { killByEnvironment } from '../local/kill-by-environment.ts'
import { createLocalProvider, limitsOf } from '../local/local-provider.ts'
import { createShimPool } from '../local/shim-pool.ts'
import { MEMORY_BYTES, PROCESSORS } from '../local/this-computer.ts'
import { unmetLocalRequirement } from '../local/unmet-local-requirement.ts'
import { HOST_VARIABLE } from './plan-host.ts'

export interface HostOptions {
  /** Private to this daemon; must be on the same disk as the blobs. */
  readonly stateDir: string
  readonly blobs: Blobs
  readonly limit?: number
  /** Whether the user has allowed jobs on this computer; may change while the daemon runs. */
  readonly access: { readonly allowed: boolean }
  readonly keep?: Partial<KeepLimits>
  readonly graceSeconds?: number
  log?(message: string, fields: Record<string, unknown>): void
}

const IDLE_SECONDS = 45

/** The host provider enforces no limits; requests are only compared with what the computer has. */
const NO_LIMITS: MachineLimits = { memory: 0, disk: 0, cpu: 0, processes: 0 }

/** Runs jobs as plain processes of this user, once the user has allowed it (`host.allow`); every result says so. */
export const createHostProvider = (options: HostOptions): Provider => {
  const dir = join(options.stateDir, 'host')
  const shims = join(dir, 'shims')
  const { access, limit = 2 * PROCESSORS } = options
  return createLocalProvider({
    name: 'host',
    get limit() {
      return access.allowed ? limit : 0
    },
    runsDir: join(dir, 'runs'),
    blobs: options.blobs,
    pool: createShimPool({
      dir: shims,
      spare: 0,
      idleSeconds: IDLE_SECONDS,
      log: options.log ?? (() => {}),
      // Without a pid namespace a job survives its shim.
      onLost: lost => {
        for (const id of lost) void killByEnvironment(HOST_VARIABLE, `${join(shims, `${id}.d`)}/`, false)
      },
      chooseUids: () => null,
      config: async () => ({
        runtime: 'host',
        backend: { type: 'none' },
        cgroup: null,
        cgroupPrefix: '',
        warm: NO_LIMITS,
        spareMachines: 0,
        maxJobs: 5000,
        idleSeconds: IDLE_SECONDS,
      }),
    }),
    defaults: NO_LIMITS,
    keep: keepLimits(options.keep),
    graceSeconds: options.graceSeconds ?? 5,
    filesLayout: 'workspace',
    fits: manifest => (access.allowed ? fits(manifest) : NOT_ALLOWED),
    check,
  })
}

const NOT_ALLOWED: Fit = {
  ok: false,
  reason: 'commands may not run on this computer without isolation',
  hint: 'The user must allow it first: deputy config set host.allow true && deputy nodes reload',
}

const fits = (manifest: Manifest): Fit => {
  const problem = unmetLocalRequirement(manifest) ?? unsupportedRequest(manifest)
  return problem === undefined ? { ok: true } : { ok: false, reason: problem }
}

/** Refuses requests that a plain process cannot satisfy. */
const unsupportedRequest = (manifest: Manifest): string | undefined => {
  if (manifest.network !== undefined && manifest.network !== 'full')
    return 'the host runtime cannot restrict the network: use the sandbox, or network full'
  const outside = manifest.files?.find(file => fileTarget(file.path).root === 'tmp')
  if (outside !== undefined)
    return `the file '${outside.path}' is outside the workspace, where the host runtime writes nothing`
  const { cpu, memory } = limitsOf(manifest, NO_LIMITS)
  if (cpu > PROCESSORS) return `it asks for ${cpu} processors, this computer has ${PROCESSORS}`
  if (memory > MEMORY_BYTES) return 'it asks for more memory than this computer has'
  return undefined
}

const check = async (): Promise<Readiness> => ({
  runtime: 'host',
  ready: true,
  checks: [
    {
      name: 'isolation',
      status: 'warning',
      message: `none: jobs run on this computer as ${userInfo().username} and can do all that this user can`,
      fix: 'Remove host from the configuration; the sandbox runs the same jobs isolated.',
    },
  ],
})
