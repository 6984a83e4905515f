import { existsSync } from 'node:fs'
import { AppError } from '../../jobs/errors.ts'
import { isSystemPath, type MountEntry, STAGING_DIRS } from './system-mounts.ts'

export interface LaunchPrefixOptions {
  /** Files of the cgroup to join. */
  readonly joinFiles: readonly string[]
  /** The user to become; null to stay. */
  readonly uid: number | null
  readonly mounts: readonly MountEntry[]
}

export interface LaunchPrefix {
  /** Put before the command that creates the sandbox. */
  readonly argv: readonly string[]
  /** The mounts, with sources that the job's user can access. */
  readonly mounts: readonly MountEntry[]
}

/**
 * Builds the command that prepares the sandbox: it joins the cgroup and becomes the job's user.
 *
 * A root daemon also mounts programs and sockets from directories that the job's user cannot enter, such as /root.
 * They are bound into a staging directory that everybody can enter, in a private mount namespace.
 */
export const launchPrefix = ({ joinFiles, uid, mounts }: LaunchPrefixOptions): LaunchPrefix => {
  const hidden =
    uid === null
      ? []
      : mounts.flatMap(item => (item.kind === 'bind' && !isSystemPath(item.source) ? [item] : []))
  const needsStaging = hidden.length > 0
  const stagingDir = needsStaging ? findStagingDir(mounts) : ''
  const stagedPaths = new Map(hidden.map((item, index) => [item.source, `${stagingDir}/${index}`]))
  const stagingArgs = [
    ...[stagingDir, String(hidden.length)],
    ...hidden.flatMap(item => [item.isDirectory ? 'd' : 'f', item.source]),
  ]
  const script = [JOIN_CGROUPS, ...(needsStaging ? [MOUNT_STAGING] : []), 'exec "$@"'].join('\n')
  const setUp = [
    ...['/bin/sh', '-c', script, 'sh', String(joinFiles.length), ...joinFiles],
    ...(needsStaging ? stagingArgs : []),
  ]
  return {
    argv: [
      ...(needsStaging ? ['unshare', '--mount', '--propagation', 'private', '--'] : []),
      ...(needsStaging || joinFiles.length > 0 ? setUp : []),
      ...dropPrivileges(uid),
    ],
    mounts: mounts.map(item => {
      const staged = item.kind === 'bind' ? stagedPaths.get(item.source) : undefined
      return staged === undefined || item.kind !== 'bind' ? item : { ...item, source: staged }
    }),
  }
}

/** `--pdeathsig` kills the sandbox when its parent exits for any reason. */
const dropPrivileges = (uid: number | null): string[] => {
  const identity = uid === null ? [] : [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups']
  return ['setpriv', ...identity, '--no-new-privs', '--pdeathsig', 'KILL', '--']
}

const JOIN_CGROUPS = 'n=$1; shift; while [ $n -gt 0 ]; do echo $$ >"$1" || exit 97; shift; n=$((n-1)); done'

const MOUNT_STAGING = [
  'set -e; dir=$1 n=$2; shift 2; i=0',
  'mount -t tmpfs -o mode=755,size=1m tmpfs "$dir"',
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
  throw new AppError(
    'unavailable',
    `Cannot find a mount point for the sandbox: ${STAGING_DIRS.join(', ')} are in use or missing.`,
  )
}
