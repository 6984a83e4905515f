import { existsSync } from 'node:fs'
import { AppError } from '../../jobs/errors.ts'
import { isSystemPath, type Shown, STAGE_DIRS } from './system.ts'

export interface Staged {
  /** Put before the command that drops to the job's user. */
  readonly prefix: readonly string[]
  readonly shown: readonly Shown[]
}

/**
 * A root daemon can show programs and sockets from directories that the job's user cannot enter, such as /root. They
 * are bound into a place everybody can enter, in a mount namespace that nobody else sees.
 */
export const stage = (shown: readonly Shown[], uid: number | null): Staged => {
  const hidden = shown.flatMap(item => (item.kind === 'bind' && !isSystemPath(item.source) ? [item] : []))
  if (uid === null || hidden.length === 0) return { prefix: [], shown }
  const dir = stageDirs()[1]!
  const placeOf = new Map(hidden.map((item, index) => [item.source, `${dir}/${index}`]))
  return {
    prefix: [
      ...['unshare', '--mount', '--propagation', 'private', '--', '/bin/sh', '-c', SCRIPT, 'sh', dir],
      ...[String(hidden.length), ...hidden.flatMap(item => [item.isDirectory ? 'd' : 'f', item.source])],
    ],
    shown: shown.map(item => {
      const place = item.kind === 'bind' ? placeOf.get(item.source) : undefined
      return place === undefined || item.kind !== 'bind' ? item : { ...item, source: place }
    }),
  }
}

const SCRIPT = [
  'set -e; dir=$1; n=$2; shift 2; i=0',
  'mount -t tmpfs -o mode=755,size=1m tmpfs "$dir"',
  'while [ $i -lt $n ]; do',
  'if [ "$1" = d ]; then mkdir "$dir/$i"; else : >"$dir/$i"; fi',
  'mount --bind "$2" "$dir/$i"; shift 2; i=$((i+1)); done; exec "$@"',
].join('\n')

/** The first is for the sandbox's own root, the second for what is staged. */
const stageDirs = (): string[] => {
  const dirs = STAGE_DIRS.filter(existsSync)
  if (dirs.length >= 2) return dirs
  throw new AppError('unavailable', `None of ${STAGE_DIRS.join(', ')} exists to mount over.`)
}
