import { existsSync } from 'node:fs'
import { AppError } from '../../jobs/errors.ts'
import { isSystemPath, type MountEntry, STAGING_DIRS, WRITABLE_DIRS } from './system-mounts.ts'

export interface LaunchPrefixOptions {
  /** Files of the cgroup to join. */
  readonly joinFiles: readonly string[]
  /** The user to become; null to stay. */
  readonly uid: number | null
  readonly mounts: readonly MountEntry[]
  /** tmpfs options for the writable directories; null when the sandbox mounts them itself. */
  readonly disk: string | null
}

export interface LaunchPrefix {
  /** Put before the command that creates the sandbox. */
  readonly argv: readonly string[]
  /** The mounts, with sources that the job's user can access. */
  readonly mounts: readonly MountEntry[]
  /** Contains the writable directories, if `disk` is set. */
  readonly stagingDir: string
}

/**
 * Builds the command that prepares the sandbox: it joins the cgroup, mounts the disk of the job, and becomes the
 * job's user. The disk is one file system, so that one limit of size and files applies to all writable directories;
 * bubblewrap alone can only limit each directory.
 *
 * A root daemon also mounts programs and sockets from directories that the job's user cannot enter, such as /root.
 * They are bound into a staging directory that everybody can enter, in a private mount namespace.
 */
export const launchPrefix = ({ joinFiles, uid, mounts, disk }: LaunchPrefixOptions): LaunchPrefix => {
  const hidden =
    uid === null
      ? []
      : mounts.flatMap(item => (item.kind === 'bind' && !isSystemPath(item.source) ? [item] : []))
  const needsStaging = disk !== null || hidden.length > 0
  const stagingDir = needsStaging ? findStagingDir(mounts) : ''
  const stagedPaths = new Map(hidden.map((item, index) => [item.source, `${stagingDir}/${index}`]))
  const unshare = [
    'unshare',
    // An ordinary user may mount in a user namespace only.
    ...(uid === null ? ['--user', '--map-root-user'] : []),
    ...['--mount', '--propagation', 'private', '--'],
  ]
  const owner = uid ?? 0
  const stagingArgs = [
    ...[stagingDir, disk ?? 'mode=755,size=1m', disk === null ? '' : String(owner), String(hidden.length)],
    ...hidden.flatMap(item => [item.isDirectory ? 'd' : 'f', item.source]),
  ]
  const script = [JOIN_CGROUPS, ...(needsStaging ? [MOUNT_STAGING] : []), 'exec "$@"'].join('\n')
  const setUp = [
    ...['/bin/sh', '-c', script, 'sh', String(joinFiles.length), ...joinFiles],
    ...(needsStaging ? stagingArgs : []),
  ]
  return {
    argv: [
      ...(needsStaging ? unshare : []),
      ...(needsStaging || joinFiles.length > 0 ? setUp : []),
      ...dropPrivileges(uid),
    ],
    mounts: mounts.map(item => {
      const staged = item.kind === 'bind' ? stagedPaths.get(item.source) : undefined
      return staged === undefined || item.kind !== 'bind' ? item : { ...item, source: staged }
    }),
    stagingDir,
  }
}

/** `--pdeathsig` kills the sandbox when its parent exits for any reason. */
const dropPrivileges = (uid: number | null): string[] => {
  const identity = uid === null ? [] : [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups']
  return ['setpriv', ...identity, '--no-new-privs', '--pdeathsig', 'KILL', '--']
}

const JOIN_CGROUPS = 'n=$1; shift; while [ $n -gt 0 ]; do echo $$ >"$1" || exit 97; shift; n=$((n-1)); done'

const MOUNT_STAGING = [
  'set -e; dir=$1 options=$2 owner=$3 n=$4; shift 4; i=0',
  'mount -t tmpfs -o "$options" tmpfs "$dir"; cd "$dir"',
  `[ -z "$owner" ] || install -d -m 1777 -o $owner -g $owner ${WRITABLE_DIRS.map(({ name }) => name).join(' ')}`,
  'while [ $i -lt $n ]; do',
  'if [ "$1" = d ]; then mkdir "$dir/$i"; else : >"$dir/$i"; fi',
  'mount --bind "$2" "$dir/$i"; shift 2; i=$((i+1)); done',
].join('\n')

/** The first directory is the root of a util-linux sandbox. A directory that contains a mount source would hide it. */
const findStagingDir = (mounts: readonly MountEntry[]): string => {
  const holds = (dir: string) =>
    mounts.some(item => item.kind === 'bind' && item.source.startsWith(`${dir}/`))
  const dir = STAGING_DIRS.filter(existsSync)
    .slice(1)
    .find(candidate => !holds(candidate))
  if (dir !== undefined) return dir
  throw new AppError('unavailable', `None of ${STAGING_DIRS.join(', ')} is free to mount over.`)
}
