import type { LaunchPlan } from '../local/box.ts'
import { createCgroup } from '../local/cgroups.ts'
import type { Backend, MachineLimits, ShimConfig } from '../local/protocol.ts'
import { bwrapCall, SYSTEM_PATH } from './bwrap.ts'
import { programView } from './programs.ts'
import { seccompFilter } from './seccomp.ts'
import { systemView } from './system.ts'

export interface SandboxShape {
  readonly network: 'none' | 'full' | readonly string[]
  readonly programs: readonly string[]
  readonly limits: MachineLimits
}

const FIRST_FD = 6

/** How one sandbox is started, by this shim and for this shape. */
export const planSandbox = (config: ShimConfig, shape: SandboxShape, name: string): LaunchPlan => {
  const backend = config.backend
  if (backend.type !== 'bwrap') throw new Error(`no plan for ${backend.type}`)
  const programs = programView(shape.programs)
  const seccomp = seccompFilter()
  const call = bwrapCall({
    shown: [...systemView(shape.network === 'full'), ...programs.shown],
    limits: shape.limits,
    hostNetwork: shape.network === 'full',
    disableUserns: backend.disableUserns,
    firstFd: FIRST_FD,
    seccomp,
  })
  const cgroup = config.cgroup === null ? null : createCgroup(config.cgroup, `${config.cgroupPrefix}${name}`)
  const infoFd = FIRST_FD + call.feeds.length
  return {
    argv: [
      ...entering(cgroup?.joinFiles ?? [], config.uid),
      ...[backend.path, '--info-fd', String(infoFd), ...call.args, '--', '/bin/sh'],
    ],
    env: { PATH: SYSTEM_PATH },
    feeds: call.feeds,
    tellsInit: true,
    cgroup,
    isolation: describe({ backend, config, shape, seccomp: seccomp !== undefined, cgroup }),
    directory: '/work',
    filesRoot: '/',
    ownPids: true,
    disks: ['/work', '/tmp', '/home/job', '/dev/shm'],
    jobEnv: {
      PATH: [SYSTEM_PATH, ...programs.path].join(':'),
      HOME: '/home/job',
      USER: 'job',
      LOGNAME: 'job',
      SHELL: '/bin/sh',
      LANG: 'C.UTF-8',
      TMPDIR: '/tmp',
    },
  }
}

/** Joins the cgroup and becomes the job's own user before anything else runs. */
const entering = (joinFiles: readonly string[], uid: number | null): string[] => {
  const drop =
    uid === null
      ? []
      : ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--no-new-privs', '--']
  if (joinFiles.length === 0) return drop
  return ['/bin/sh', '-c', JOIN, 'sh', String(joinFiles.length), ...joinFiles, ...drop]
}

const JOIN =
  'n=$1; shift; while [ $n -gt 0 ]; do echo $$ >"$1" || exit 97; shift; n=$((n-1)); done; exec "$@"'

interface Description {
  readonly backend: Backend
  readonly config: ShimConfig
  readonly shape: SandboxShape
  readonly seccomp: boolean
  readonly cgroup: LaunchPlan['cgroup']
}

/** What held, in words for the result of the job. */
const describe = ({ backend, config, shape, seccomp, cgroup }: Description): string[] => [
  `namespaces: user, mount, pid, ipc, uts, cgroup${shape.network === 'full' ? '' : ', network'} (${backend.type === 'bwrap' ? 'bubblewrap' : 'util-linux'})`,
  'no capabilities, no new privileges',
  ...(seccomp ? ['seccomp filter'] : []),
  'read-only system, private workspace in memory',
  ...(config.uid === null ? [] : [`user id of its own (${config.uid})`]),
  shape.network === 'none'
    ? 'no network'
    : shape.network === 'full'
      ? 'network: that of this computer'
      : `network: only ${shape.network.join(', ')}`,
  cgroup === null ? 'limits: rlimits only' : `limits: cgroup v${cgroup.version} (${kept(cgroup.keeps)})`,
]

const kept = (keeps: NonNullable<LaunchPlan['cgroup']>['keeps']): string =>
  Object.entries(keeps)
    .filter(([, held]) => held)
    .map(([name]) => name)
    .join(', ') || 'none'
