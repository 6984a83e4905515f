import { AppError } from '../../jobs/errors.ts'
import type { MachineLimits } from '../../runner/shim-start.ts'
import { createCgroup } from '../local/cgroups.ts'
import { killByEnvironment } from '../local/kill-by-environment.ts'
import { FIRST_CONTENT_FD, type LaunchPlan } from '../local/local-machine.ts'
import type { Backend, ShimConfig } from '../local/shim-config.ts'
import { bwrapCall, SYSTEM_PATH } from './bwrap.ts'
import { egressSetup } from './egress-setup.ts'
import type { JobDisk } from './job-disks.ts'
import { launchPrefix } from './launch-prefix.ts'
import { programMounts } from './program-mounts.ts'
import { seccompFilter } from './seccomp.ts'
import { type MountEntry, systemMounts, WRITABLE_DIRS } from './system-mounts.ts'
import { unshareCommand } from './unshare.ts'

export interface SandboxShape {
  readonly network: 'none' | 'full' | readonly string[]
  readonly programs: readonly string[]
  readonly limits: MachineLimits
  /** Socket of the egress proxy, for a job with an allow-list. */
  readonly proxySocket?: string
}

/** Set in the environment of the launcher and of bubblewrap's init, not of the job, to find them after a failed boot. */
export const SANDBOX_VARIABLE = 'DEPUTY_BOX'

export interface SandboxConfig extends Pick<ShimConfig, 'backend' | 'cgroup' | 'cgroupPrefix'> {
  /** The user id of the machine when the daemon is root. */
  readonly uid: number | null
}

/** Plans how this shim starts a sandbox of this shape. Without a disk the sandbox mounts its writable directories itself. */
export const planSandbox = (
  config: SandboxConfig,
  shape: SandboxShape,
  name: string,
  disk: JobDisk | null,
): LaunchPlan => {
  const programs = programMounts(shape.programs)
  const hostNetwork = shape.network === 'full'
  const egress =
    shape.proxySocket === undefined ? undefined : egressSetup(shape.proxySocket, [...shape.network])
  const mounts = systemMounts(hostNetwork)
  const { backend } = config
  const cgroup = config.cgroup === null ? null : createCgroup(config.cgroup, `${config.cgroupPrefix}${name}`)
  const entry = launchPrefix({
    joinFiles: cgroup?.joinFiles ?? [],
    uid: config.uid,
    mounts: [...mounts, ...programs.mounts, ...(egress?.mounts ?? [])],
  })
  const seccomp = seccompFilter({ memoryCounted: cgroup?.enforces.memory ?? false })
  const build = builderOf(
    backend,
    seccomp,
  )({
    mounts: entry.mounts.slice(0, mounts.length),
    topMounts: entry.mounts.slice(mounts.length),
    limits: shape.limits,
    diskDir: disk?.dir ?? null,
    hostNetwork,
  })
  return {
    argv: [...entry.argv, ...build.argv],
    env: { PATH: SYSTEM_PATH, [SANDBOX_VARIABLE]: `${config.cgroupPrefix}${name}` },
    fdContents: build.fdContents,
    reportsInitPid: build.reportsInitPid,
    cgroup,
    isolation: describe({ config, shape, seccomp: build.seccomp, cgroup }),
    directory: '/work',
    sessionDirectory: '/tmp',
    filesRoot: '/',
    hasPidNamespace: true,
    ...(egress === undefined ? {} : { helper: egress.command }),
    killAfterFailedBoot: () => killByEnvironment(SANDBOX_VARIABLE, `${config.cgroupPrefix}${name}`),
    cleanUp: () => disk?.release(),
    diskPaths: backend.type === 'bwrap' && disk === null ? WRITABLE_DIRS.map(part => part.target) : ['/work'],
    jobEnv: {
      PATH: [SYSTEM_PATH, ...programs.path].join(':'),
      HOME: '/home/job',
      USER: 'job',
      LOGNAME: 'job',
      SHELL: '/bin/sh',
      LANG: 'C.UTF-8',
      TMPDIR: '/tmp',
      ...egress?.env,
    },
  }
}

interface View {
  readonly mounts: readonly MountEntry[]
  readonly topMounts: readonly MountEntry[]
  readonly limits: MachineLimits
  readonly diskDir: string | null
  readonly hostNetwork: boolean
}

interface Build {
  readonly argv: readonly string[]
  readonly fdContents: readonly Buffer[]
  readonly reportsInitPid: boolean
  readonly seccomp: boolean
}

const builderOf = (backend: Backend, seccomp: Buffer | undefined): ((view: View) => Build) => {
  if (backend.type === 'bwrap')
    return view => {
      const call = bwrapCall({
        ...view,
        disableUserns: backend.disableUserns,
        firstFd: FIRST_CONTENT_FD,
        seccomp,
      })
      const infoFd = String(FIRST_CONTENT_FD + call.fdContents.length)
      return {
        argv: [backend.path, '--info-fd', infoFd, ...call.args, '--', '/bin/sh'],
        fdContents: call.fdContents,
        reportsInitPid: true,
        seccomp: seccomp !== undefined,
      }
    }
  if (backend.type === 'unshare')
    return view => {
      const seccompLoader = seccomp === undefined ? null : backend.seccompLoader
      return {
        argv: unshareCommand({ ...view, seccompFd: FIRST_CONTENT_FD, seccompLoader }),
        fdContents: seccompLoader === null ? [] : [seccomp!],
        reportsInitPid: false,
        seccomp: seccompLoader !== null,
      }
    }
  throw new AppError('unavailable', 'Sandboxes do not start on this computer.', {
    hint: 'Run: deputy doctor',
  })
}

interface Description {
  readonly config: SandboxConfig
  readonly shape: SandboxShape
  readonly seccomp: boolean
  readonly cgroup: LaunchPlan['cgroup']
}

/** Describes the isolation, for the result of the job. */
const describe = ({ config, shape, seccomp, cgroup }: Description): string[] => [
  `namespaces: user, mount, pid, ipc, uts, cgroup${shape.network === 'full' ? '' : ', network'} (${config.backend.type === 'bwrap' ? 'bubblewrap' : 'util-linux'})`,
  'no capabilities, no new privileges',
  ...(seccomp ? ['seccomp filter'] : []),
  'read-only system, private workspace in memory',
  ...(config.uid === null ? [] : [`user id of its own (${config.uid})`]),
  shape.network === 'none'
    ? 'no network'
    : shape.network === 'full'
      ? 'network: that of this computer'
      : `network: only ${shape.network.join(', ')}`,
  cgroup === null
    ? 'limits: rlimits; memory is watched'
    : `limits: cgroup v${cgroup.version} (${enforcedLimits(cgroup.enforces)})`,
]

const enforcedLimits = (enforces: NonNullable<LaunchPlan['cgroup']>['enforces']): string =>
  Object.entries(enforces)
    .filter(([, held]) => held)
    .map(([name]) => name)
    .join(', ') || 'none'
