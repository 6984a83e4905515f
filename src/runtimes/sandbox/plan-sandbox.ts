import { AppError } from '../../jobs/errors.ts'
import { createCgroup } from '../local/cgroups.ts'
import { endMarked } from '../local/kill-by-environment.ts'
import type { LaunchPlan } from '../local/local-machine.ts'
import type { Backend, MachineLimits, ShimConfig } from '../local/shim-protocol.ts'
import { bwrapCall, SYSTEM_PATH } from './bwrap.ts'
import { outlet } from './egress-setup.ts'
import { enter } from './launch-prefix.ts'
import { programView } from './program-mounts.ts'
import { seccompFilter } from './seccomp.ts'
import { DISK_PARTS, diskOptions, type Shown, systemView } from './system-mounts.ts'
import { unshareCommand } from './unshare.ts'

export interface SandboxShape {
  readonly network: 'none' | 'full' | readonly string[]
  readonly programs: readonly string[]
  readonly limits: MachineLimits
  /** Where the proxy for a network list listens. */
  readonly proxySocket?: string
}

const FIRST_FD = 6

/** In the environment of the launcher (and of bubblewrap's init), never of the job: finds what a sandbox that broke off while booting left. */
export const BOX_MARK = 'DEPUTY_BOX'

/** How one sandbox is started, by this shim and for this shape. */
export const planSandbox = (config: ShimConfig, shape: SandboxShape, name: string): LaunchPlan => {
  const programs = programView(shape.programs)
  const hostNetwork = shape.network === 'full'
  const exit = shape.proxySocket === undefined ? undefined : outlet(shape.proxySocket, [...shape.network])
  const shown = systemView(hostNetwork)
  const { backend } = config
  const bindsDisk = backend.type === 'bwrap' && backend.oneDisk
  const cgroup = config.cgroup === null ? null : createCgroup(config.cgroup, `${config.cgroupPrefix}${name}`)
  const entry = enter({
    joinFiles: cgroup?.joinFiles ?? [],
    uid: config.uid,
    shown: [...shown, ...programs.shown, ...(exit?.shown ?? [])],
    disk: bindsDisk ? diskOptions(shape.limits.disk) : null,
  })
  const seccomp = seccompFilter({ memoryCounted: cgroup?.keeps.memory ?? false })
  const build = builderOf(
    backend,
    seccomp,
  )({
    shown: entry.shown.slice(0, shown.length),
    onTop: entry.shown.slice(shown.length),
    limits: shape.limits,
    diskDir: bindsDisk ? entry.stageDir : null,
    hostNetwork,
  })
  return {
    argv: [...entry.prefix, ...build.argv],
    env: { PATH: SYSTEM_PATH, [BOX_MARK]: `${config.cgroupPrefix}${name}` },
    feeds: build.feeds,
    tellsInit: build.tellsInit,
    cgroup,
    isolation: describe({ config, shape, seccomp: build.seccomp, cgroup }),
    directory: '/work',
    filesRoot: '/',
    ownPids: true,
    ...(exit === undefined ? {} : { helper: exit.command }),
    endBroken: () => endMarked(BOX_MARK, `${config.cgroupPrefix}${name}`),
    disks: backend.type === 'bwrap' && !backend.oneDisk ? DISK_PARTS.map(part => part.target) : ['/work'],
    jobEnv: {
      PATH: [SYSTEM_PATH, ...programs.path].join(':'),
      HOME: '/home/job',
      USER: 'job',
      LOGNAME: 'job',
      SHELL: '/bin/sh',
      LANG: 'C.UTF-8',
      TMPDIR: '/tmp',
      ...exit?.env,
    },
  }
}

interface View {
  readonly shown: readonly Shown[]
  readonly onTop: readonly Shown[]
  readonly limits: MachineLimits
  readonly diskDir: string | null
  readonly hostNetwork: boolean
}

interface Build {
  readonly argv: readonly string[]
  readonly feeds: readonly Buffer[]
  readonly tellsInit: boolean
  readonly seccomp: boolean
}

const builderOf = (backend: Backend, seccomp: Buffer | undefined): ((view: View) => Build) => {
  if (backend.type === 'bwrap')
    return view => {
      const call = bwrapCall({ ...view, disableUserns: backend.disableUserns, firstFd: FIRST_FD, seccomp })
      const infoFd = String(FIRST_FD + call.feeds.length)
      return {
        argv: [backend.path, '--info-fd', infoFd, ...call.args, '--', '/bin/sh'],
        feeds: call.feeds,
        tellsInit: true,
        seccomp: seccomp !== undefined,
      }
    }
  if (backend.type === 'unshare')
    return view => {
      const seccompLoader = seccomp === undefined ? null : backend.seccompLoader
      return {
        argv: unshareCommand({ ...view, seccompFd: FIRST_FD, seccompLoader }),
        feeds: seccompLoader === null ? [] : [seccomp!],
        tellsInit: false,
        seccomp: seccompLoader !== null,
      }
    }
  throw new AppError('unavailable', 'Sandboxes cannot be made on this computer.', {
    hint: 'Run: deputy doctor',
  })
}

interface Description {
  readonly config: ShimConfig
  readonly shape: SandboxShape
  readonly seccomp: boolean
  readonly cgroup: LaunchPlan['cgroup']
}

/** What held, in words for the result of the job. */
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
    : `limits: cgroup v${cgroup.version} (${kept(cgroup.keeps)})`,
]

const kept = (keeps: NonNullable<LaunchPlan['cgroup']>['keeps']): string =>
  Object.entries(keeps)
    .filter(([, held]) => held)
    .map(([name]) => name)
    .join(', ') || 'none'
