import {
  accessSync,
  constants,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { readMembers, removeCgroups } from './cgroups.ts'
import { descendantsOf } from './process-tree.ts'
import type { CgroupRoot } from './shim-config.ts'

/** The cgroup in which Deputy can create cgroups, or why there is none. */
export type CgroupLookup =
  | { readonly root: CgroupRoot; readonly problem: null }
  | { readonly root: null; readonly problem: string }

export const V1_OF_ROOT = 'cgroup v1 belongs to root here'
export const NO_CGROUPS = 'no cgroup file system is mounted'

/** Finds a cgroup in which this process can create children, starting with its own. */
export const findCgroupRoot = (proc = '/proc/self'): CgroupLookup => {
  try {
    const own = parseOwnCgroups(readFileSync(join(proc, 'cgroup'), 'utf8'))
    const mounts = parseMounts(readFileSync(join(proc, 'mountinfo'), 'utf8'))
    return findV1(own, mounts) ?? findV2(own, mounts)
  } catch (error) {
    return { root: null, problem: (error as Error).message }
  }
}

interface CgroupMount {
  readonly root: string
  readonly path: string
  readonly version: 1 | 2
  readonly controllers: readonly string[]
}

const findV1 = (own: Map<string, string>, mounts: CgroupMount[]): CgroupLookup | undefined => {
  const dirOf = (controller: string): string | null => {
    const mount = mounts.find(
      candidate => candidate.version === 1 && candidate.controllers.includes(controller),
    )
    const path = own.get(controller)
    if (mount === undefined || path === undefined) return null
    const dir = mountedPath(mount, path)
    return isUsable(dir) ? dir : null
  }
  if (!mounts.some(mount => mount.version === 1 && mount.controllers.includes('memory'))) return undefined
  const [memory, pids, cpu] = [dirOf('memory'), dirOf('pids'), dirOf('cpu')]
  if (memory === null && pids === null && cpu === null) return { root: null, problem: V1_OF_ROOT }
  return { root: { version: 1, memory, pids, cpu }, problem: null }
}

const WANTED_CONTROLLERS = ['memory', 'pids', 'cpu']

const findV2 = (own: Map<string, string>, mounts: CgroupMount[]): CgroupLookup => {
  const mount = mounts.find(candidate => candidate.version === 2)
  const path = own.get('')
  if (mount === undefined || path === undefined) return { root: null, problem: NO_CGROUPS }
  const dir = mountedPath(mount, path)
  // An earlier daemon has moved this process into a child of the delegated cgroup: use the parent.
  const ours = dir.endsWith(`/${SUPERVISOR}`) ? dirname(dir) : dir
  const delegated = tryParent(ours, ours === mount.path)
  if (delegated.root !== null || process.getuid?.() !== 0) return delegated
  // Root can create a cgroup of its own when the current one is shared with other programs.
  const beside = join(mount.path, 'deputy.slice')
  mkdirSync(beside, { recursive: true })
  return tryParent(beside, false)
}

const SUPERVISOR = 'supervisor'

const tryParent = (base: string, isTop: boolean): CgroupLookup => {
  if (!isUsable(base)) return { root: null, problem: `the cgroup ${base} is not delegated to us` }
  const available = readFileSync(join(base, 'cgroup.controllers'), 'utf8').trim().split(/\s+/)
  const controllers = WANTED_CONTROLLERS.filter(controller => available.includes(controller))
  if (controllers.length === 0)
    return { root: null, problem: `no controllers are delegated to the cgroup ${base}` }
  // In a container all processes may be in its top cgroup. Elsewhere, do not move processes of other programs.
  if (!isTop && readMembers(base).some(pid => !isOwnProcess(pid)))
    return { root: null, problem: `the cgroup ${base} is shared with other programs` }
  try {
    moveProcessesToChild(base)
    writeFileSync(join(base, 'cgroup.subtree_control'), controllers.map(name => `+${name}`).join(' '))
  } catch (error) {
    return { root: null, problem: `controllers cannot be enabled in ${base}: ${(error as Error).message}` }
  }
  return { root: { version: 2, path: base, controllers }, problem: null }
}

/** cgroup v2 enables controllers only in a cgroup without processes: move them to a child. */
const moveProcessesToChild = (base: string): void => {
  const members = readMembers(base)
  if (members.length === 0) return
  const supervisor = join(base, SUPERVISOR)
  mkdirSync(supervisor, { recursive: true })
  for (const pid of members) writeFileSync(join(supervisor, 'cgroup.procs'), String(pid))
}

/** True for this process, its descendants, and the shims of an earlier daemon. */
const isOwnProcess = (pid: number): boolean => {
  if (pid === process.pid || descendantsOf(process.pid).includes(pid)) return true
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('/shim.js\0')
  } catch {
    return true // The process has exited.
  }
}

const isUsable = (dir: string): boolean => {
  const testDir = join(dir, `deputy-trial-${process.pid}`)
  try {
    accessSync(dir, constants.W_OK)
    mkdirSync(testDir)
    rmdirSync(testDir)
    return true
  } catch {
    return false
  }
}

/** A container sees only a part of the hierarchy: paths are relative to the mount. */
const mountedPath = (mount: CgroupMount, path: string): string =>
  join(mount.path, path.startsWith(mount.root) ? path.slice(mount.root.length) : path).replace(/\/$/, '')

/** Parses lines such as `4:memory:/path`. The controller name is empty in version 2. */
const parseOwnCgroups = (text: string): Map<string, string> =>
  new Map(
    text
      .trim()
      .split('\n')
      .flatMap(line => {
        const [, names = '', ...path] = line.split(':')
        return names.split(',').map((name): [string, string] => [name, path.join(':')])
      }),
  )

const parseMounts = (text: string): CgroupMount[] =>
  text.split('\n').flatMap(line => {
    const [left = '', right = ''] = line.split(' - ')
    const [, , , root = '', path = ''] = left.split(' ')
    const [type, , options = ''] = right.split(' ')
    if (type !== 'cgroup' && type !== 'cgroup2') return []
    return [
      {
        root: root === '/' ? '' : root,
        path,
        version: type === 'cgroup' ? 1 : 2,
        controllers: options.split(','),
      },
    ]
  })

/** Removes cgroups of shims that have exited. */
export const removeStaleCgroups = async (
  root: CgroupRoot,
  prefix: string,
  living: ReadonlySet<string>,
): Promise<void> => {
  const parents =
    root.version === 2 ? [root.path] : [root.memory, root.pids, root.cpu].filter(dir => dir !== null)
  const stale = [...new Set(parents)].flatMap(parent =>
    readdirSync(parent)
      .filter(name => name.startsWith(prefix) && !living.has(name.slice(prefix.length).split('-')[0]!))
      .map(name => join(parent, name)),
  )
  await removeCgroups(stale)
}
