import type { MachineLimits } from '../local/shim-protocol.ts'
import { JOB_UID, type MountEntry, WRITABLE_DIRS } from './system-mounts.ts'

export interface BwrapOptions {
  readonly mounts: readonly MountEntry[]
  /** Shown on top of everything: programs may lie below /tmp or another place that is private to the job. */
  readonly topMounts: readonly MountEntry[]
  readonly limits: MachineLimits
  /** Where the parts of the job's disk are prepared; null: each becomes a file system of its own. */
  readonly diskDir: string | null
  readonly hostNetwork: boolean
  /** Newer versions can forbid further user namespaces. */
  readonly disableUserns: boolean
  /** Number of the first fd that is free for us. */
  readonly firstFd: number
  readonly seccomp: Buffer | undefined
}

export interface BwrapCall {
  /** After the program's name, before the command. */
  readonly args: readonly string[]
  /** Contents of `firstFd` and those after it. */
  readonly fdContents: readonly Buffer[]
}

/** The arguments for bubblewrap. They travel through a descriptor: a command line can be read by every process. */
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
    ...WRITABLE_DIRS.flatMap(({ name, target, mode }) =>
      options.diskDir === null
        ? ['--size', String(options.limits.disk), '--perms', mode, '--tmpfs', target]
        : ['--bind', `${options.diskDir}/${name}`, target, '--chmod', mode, target],
    ),
    ...['--chdir', '/work'],
    ...options.topMounts.flatMap(item => mountArgs(item, addFd)),
    // Last: until then / and /dev are writable and without a size.
    ...['--remount-ro', '/dev', '--remount-ro', '/'],
    ...(options.seccomp === undefined ? [] : ['--seccomp', addFd(options.seccomp)]),
  ]
  fdContents[0] = Buffer.from(args.map(arg => `${arg}\0`).join(''))
  return { args: ['--args', String(options.firstFd)], fdContents }
}

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
