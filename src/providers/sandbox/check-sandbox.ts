import { readFileSync } from 'node:fs'
import { formatSize } from '../../jobs/sizes.ts'
import type { Check, Readiness } from '../../ports.ts'
import type { MachineLimits } from '../../runner/shim-start.ts'
import { type CgroupLookup, NO_CGROUPS, V1_OF_ROOT } from '../local/cgroup-root.ts'
import type { Probe } from './probe-backend.ts'
import type { UidRange } from './sandbox-uids.ts'
import { seccompFilter } from './seccomp.ts'
import { WRITABLE_DIRS } from './system-mounts.ts'

export interface CheckOptions {
  readonly probe: Probe
  readonly cgroup: CgroupLookup
  readonly uids: UidRange | null
  readonly defaults: MachineLimits
}

/** Checks the isolation of sandboxes on this computer. */
export const checkSandbox = ({ probe, cgroup, uids, defaults }: CheckOptions): Readiness => {
  const checks: Check[] = [
    startCheck(probe),
    backendCheck(probe),
    seccompCheck(probe),
    identityCheck(uids),
    ...limitChecks(cgroup, defaults),
    diskCheck(probe, defaults),
  ]
  return { runtime: 'sandbox', ready: checks.every(check => check.status !== 'failed'), checks }
}

const startCheck = ({ sandboxProblem }: Probe): Check => {
  if (sandboxProblem === null)
    return { name: 'sandbox', status: 'ok', message: 'a test sandbox started and exited' }
  return {
    name: 'sandbox',
    status: 'failed',
    message: `sandboxes do not start: ${sandboxProblem}`,
    fix: namespaceFix(),
  }
}

const backendCheck = ({ backend, bwrapVersion, bwrapProblem }: Probe): Check =>
  backend.type === 'bwrap'
    ? { name: 'bubblewrap', status: 'ok', message: `version ${bwrapVersion}` }
    : {
        name: 'bubblewrap',
        status: 'warning',
        message: `${bwrapProblem ?? 'not used'}: sandboxes are built from util-linux, which starts them more slowly`,
        fix: 'apt install bubblewrap',
      }

const seccompCheck = ({ backend }: Probe): Check => {
  const loaded = backend.type === 'bwrap' || (backend.type === 'unshare' && backend.seccompLoader !== null)
  if (loaded && seccompFilter({ memoryCounted: true }) !== undefined)
    return { name: 'seccomp', status: 'ok', message: 'dangerous system calls are blocked' }
  return {
    name: 'seccomp',
    status: 'warning',
    message: loaded ? `no filter for ${process.arch}` : 'no program here can load a filter',
    fix: 'apt install bubblewrap',
  }
}

const identityCheck = (uids: UidRange | null): Check =>
  uids === null
    ? {
        name: 'user',
        status: 'ok',
        message: `jobs run as user ${process.getuid?.()}, without access to its files or privileges`,
      }
    : { name: 'user', status: 'ok', message: `each job gets its own user id, starting at ${uids.first}` }

const limitChecks = (cgroup: CgroupLookup, defaults: MachineLimits): Check[] => {
  const root = cgroup.root
  const enforces = {
    memory:
      root !== null && (root.version === 1 ? root.memory !== null : root.controllers.includes('memory')),
    processes: root !== null && (root.version === 1 ? root.pids !== null : root.controllers.includes('pids')),
    cpu: root !== null && (root.version === 1 ? root.cpu !== null : root.controllers.includes('cpu')),
  }
  const by = root === null ? '' : ` (cgroup v${root.version})`
  const why = cgroup.problem ?? 'that controller is missing'
  const fix = delegationFix(cgroup)
  return [
    enforces.memory
      ? { name: 'memory', status: 'ok', message: `limited to ${formatSize(defaults.memory)}${by}` }
      : {
          name: 'memory',
          status: 'warning',
          message: `watched ten times a second, not limited by the kernel: ${why}`,
          fix,
        },
    enforces.processes
      ? { name: 'processes', status: 'ok', message: `limited to ${defaults.processes}${by}` }
      : { name: 'processes', status: 'ok', message: `limited to ${defaults.processes} (rlimit)` },
    enforces.cpu
      ? { name: 'cpu', status: 'ok', message: `limited to ${defaults.cpu} processors${by}` }
      : { name: 'cpu', status: 'warning', message: `not limited: ${why}`, fix },
  ]
}

const diskCheck = ({ backend }: Probe, { disk }: MachineLimits): Check =>
  backend.type === 'bwrap' && !backend.oneDisk
    ? {
        name: 'disk',
        status: 'warning',
        message: `${WRITABLE_DIRS.map(part => part.target).join(', ')} may hold ${formatSize(disk)} each, in any number of files: only bubblewrap may mount here`,
        fix: namespaceFix(),
      }
    : { name: 'disk', status: 'ok', message: `limited to ${formatSize(disk)}, held in memory` }

/** On cgroup v2, processes of a systemd service may create cgroups with Delegate=yes. On v1, only root may. */
const delegationFix = ({ problem, root }: CgroupLookup): string => {
  if (problem === NO_CGROUPS) return 'Mount cgroup v2: mount -t cgroup2 none /sys/fs/cgroup'
  if (root?.version === 1 || problem === V1_OF_ROOT)
    return 'This computer uses cgroup v1. Run the daemon as root, or boot with systemd.unified_cgroup_hierarchy=1.'
  return process.getuid?.() === 0
    ? 'Run the daemon as a systemd service with Delegate=yes.'
    : 'Run the daemon under your systemd: systemd-run --user -p Delegate=yes --unit deputy deputy daemon run'
}

/** Suggests a fix for the usual reasons why a user cannot create namespaces. */
const namespaceFix = (): string => {
  if (setting('kernel/apparmor_restrict_unprivileged_userns') === '1')
    return 'AppArmor forbids user namespaces. Allow them: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or install the profile of bubblewrap: apt install apparmor-profiles'
  if (setting('kernel/unprivileged_userns_clone') === '0')
    return 'User namespaces are switched off: sysctl -w kernel.unprivileged_userns_clone=1'
  if (setting('user/max_user_namespaces') === '0')
    return 'User namespaces are switched off: sysctl -w user.max_user_namespaces=15000'
  return 'In a container, allow it to create namespaces: docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined …'
}

const setting = (name: string): string | undefined => {
  try {
    return readFileSync(`/proc/sys/${name}`, 'utf8').trim()
  } catch {
    return undefined
  }
}
