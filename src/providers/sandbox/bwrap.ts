import type { MachineLimits } from '../../runner/shim-start.ts'
import { JOB_UID, type MountEntry, WRITABLE_DIRS } from './system-mounts.ts'

export interface BwrapOptions {
  readonly mounts: readonly MountEntry[]
  /** Mounted last: programs may be below /tmp or another directory that is private to the job. */
  readonly topMounts: readonly MountEntry[]
  readonly limits: MachineLimits
  /** Directory with the prepared writable directories; null to give each its own file system. */
  readonly diskDir: string | null
  readonly hostNetwork: boolean
  /** Newer versions can forbid further user namespaces. */
  readonly disableUserns: boolean
  /** First free file descriptor. */
  readonly firstFd: number
  readonly seccomp: Buffer | undefined
}

export interface BwrapCall {
  /** Arguments between the program name and the command. */
  readonly args: readonly string[]
  /** Contents of `firstFd` and those after it. */
  readonly fdContents: readonly Buffer[]
}

/** Builds the arguments of bubblewrap. They are passed through a descriptor: every process can read a command line. */
export const bwrapCall = (options: BwrapOptions): BwrapCall => {
  const fdContents: Buffer[] = [Buffer.alloc(0)]
  const addFd = (data: Buffer): string => String(options.firstFd + fdContents.push(data) - 1)
  const args = [
    ...['--unshare-all', '--unshare-user', ...(options.disableUserns ? ['--disable-userns'] : [])],
    ...(options.hostNetwork ? ['--share-net'] : []),
    ...['--uid', String(JOB_UID), '--gid', String(JOB_UID), '--new-session', '--die-with-parent'],
    ...['--cap-drop', 'ALL', '--clearenv', '--hostname', 'sandbox'],
    ...['--setenv', 'PATH', SYSTEM_PATH, '--dir', '/etc', '--dir', '/run'],
    ...options.mounts.flatMap(item => mountArgs(item, addFd)),
    ...['--proc', '/proc', '--ro-bind', '/proc/sys', '/proc/sys', '--dev', '/dev'],
    ...INIT_ENVIRONMENT.flatMap(path => ['--ro-bind-data', addFd(Buffer.alloc(0)), path]),
    ...WRITABLE_DIRS.flatMap(({ name, target, mode }) =>
      options.diskDir === null
        ? ['--size', String(options.limits.disk), '--perms', mode, '--tmpfs', target]
        : ['--bind', `${options.diskDir}/${name}`, target, '--chmod', mode, target],
    ),
    ...['--symlink', 'work', '/workspace', '--chdir', '/work'],
    ...options.topMounts.flatMap(item => mountArgs(item, addFd)),
    // Last: until here / and /dev are writable and have no size limit.
    ...['--remount-ro', '/dev', '--remount-ro', '/'],
    ...(options.seccomp === undefined ? [] : ['--seccomp', addFd(options.seccomp)]),
  ]
  fdContents[0] = Buffer.from(args.map(arg => `${arg}\0`).join(''))
  return { args: ['--args', String(options.firstFd)], fdContents }
}

/** Bubblewrap's init keeps the environment of the launcher, which names the machine. It is hidden from the job. */
const INIT_ENVIRONMENT = ['/proc/1/environ', '/proc/1/task/1/environ']

export const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

const mountArgs = (item: MountEntry, addFd: (data: Buffer) => string): string[] => {
  switch (item.kind) {
    case 'bind':
      return ['--ro-bind', item.source, item.target]
    case 'link':
      return ['--symlink', item.to, item.target]
    case 'text':
      return ['--ro-bind-data', addFd(Buffer.from(item.text)), item.target]
  }
}
