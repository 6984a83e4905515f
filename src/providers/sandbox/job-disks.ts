import { execFileSync } from 'node:child_process'
import { chownSync, mkdirSync, rmdirSync } from 'node:fs'
import type { Backend } from '../local/shim-config.ts'
import { SYSTEM_PATH } from './bwrap.ts'
import { diskOptions, WRITABLE_DIRS } from './system-mounts.ts'

/** The file system for everything that one machine writes. */
export interface JobDisk {
  /** Contains the writable directories. */
  readonly dir: string
  /** Call it when the machine has exited. */
  release(): void
}

/** Covered by a file system with the disks, in the shim's mount namespace. No program of a job lies below it. */
export const DISKS_DIR = '/sys/kernel'

/**
 * Prepares disks, so that one limit of size and files applies to all writable directories of a machine; bubblewrap
 * alone can only limit each directory. The shim mounts them before a machine needs one and uses an empty one again:
 * a process for each mount would cost more than the start of the sandbox.
 */
export const createJobDisks = (): { take(bytes: number, uid: number | null): JobDisk } => {
  mount(DISKS_OPTIONS, DISKS_DIR)
  const free = new Map<number, string[]>()
  let mounted = 0

  const mountDisk = (bytes: number): string => {
    const dir = `${DISKS_DIR}/${mounted++}`
    mkdirSync(dir)
    mount(diskOptions(bytes), dir)
    return dir
  }

  return {
    take: (bytes, uid) => {
      const dir = free.get(bytes)?.pop() ?? mountDisk(bytes)
      for (const path of directoriesOf(dir)) {
        mkdirSync(path)
        if (uid !== null) chownSync(path, uid, uid)
      }
      return {
        dir,
        release: () => {
          if (isEmptied(dir)) free.set(bytes, [...(free.get(bytes) ?? []), dir])
          else unmount(dir)
        },
      }
    },
  }
}

/** Runs a program in a mount namespace in which disks can be mounted. */
export const mountNamespace = (isRoot: boolean): string[] => [
  'unshare',
  // An ordinary user may mount in a user namespace only.
  ...(isRoot ? [] : ['--user', '--map-root-user']),
  // Later mounts of the computer arrive here, and none of these leaves.
  ...['--mount', '--propagation', 'slave', '--'],
]

/** For the test sandbox: prepares a disk in `DISKS_DIR/0` with programs only, then executes the arguments. */
export const diskSetUp = (uid: number | null, bytes: number): string[] => [
  ...mountNamespace(uid !== null),
  ...['/bin/sh', '-c', SET_UP, 'sh', DISKS_OPTIONS, diskOptions(bytes), `${DISKS_DIR}/0`, String(uid ?? 0)],
]

export const hasOneDisk = (backend: Backend): boolean => backend.type === 'bwrap' && backend.oneDisk

const DISKS_OPTIONS = 'mode=755,size=1m'

const SET_UP = [
  `set -e; mount -t tmpfs -o "$1" tmpfs ${DISKS_DIR}; mkdir "$3"; mount -t tmpfs -o "$2" tmpfs "$3"`,
  `(cd "$3" && install -d -o "$4" -g "$4" ${WRITABLE_DIRS.map(({ name }) => name).join(' ')})`,
  'shift 4; exec "$@"',
].join('\n')

const directoriesOf = (dir: string): string[] => WRITABLE_DIRS.map(({ name }) => `${dir}/${name}`)

/** Removes the writable directories, with the modes and attributes that a job gave them, unless they have content. */
const isEmptied = (dir: string): boolean => {
  try {
    for (const path of directoriesOf(dir)) rmdirSync(path)
    return true
  } catch {
    return false
  }
}

const mount = (options: string, dir: string): void => {
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', dir], {
    env: { PATH: SYSTEM_PATH },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
}

/** Lazily: the machine's own mounts of it may last a moment longer. The memory is free when the last is gone. */
const unmount = (dir: string): void => {
  try {
    execFileSync('umount', ['-l', dir], { env: { PATH: SYSTEM_PATH }, stdio: 'ignore' })
    rmdirSync(dir)
  } catch (error) {
    // No process could be started: the disk is not used again and stays until the shim ends.
    console.error(error)
  }
}
