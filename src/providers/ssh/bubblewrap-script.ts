import type { ProbeReport } from '../../nodes/probe/probe-report.ts'
import { shellJoin, shellQuote } from '../../runner/shell-words.ts'

export interface IsolationRequest {
  /** Relative to the home on the node. */
  workspace: string
  /** Names of variables the command is to see. */
  variables: readonly string[]
  network: 'none' | 'full'
  /** A number no account has, for a login as root. */
  uid: number
  root: boolean
  /** A program that the user talks to: it keeps its terminal, and hears that the terminal is closed. */
  isSession?: boolean
}

/** Whether a node can keep a job apart, and if not, why. */
export const isolationProblem = (report: ProbeReport | undefined): string | undefined => {
  if (report === undefined) return 'the node has not been probed yet'
  if (!report.isolates) return 'bubblewrap is not installed there, or does not work'
  if (report.root && !report.tools.includes('setpriv'))
    return 'the login there is root and setpriv is missing'
  if (!report.tools.includes('bash')) return 'bash is not installed there'
  return undefined
}

/**
 * A bash script that runs its arguments in bubblewrap: read-only system, workspace at /work, no home directories, no
 * capabilities, its own processes and, unless requested, its own network. A root login first switches to a user id of
 * the job: in a user namespace, root could still open root's files in /proc. The mount point is a directory that this
 * user id can reach without opening root's home.
 */
export const isolatedScript = (request: IsolationRequest): string => {
  const flags = [
    ...['--unshare-all', '--cap-drop', 'ALL'],
    ...(request.isSession ? [] : ['--die-with-parent', '--new-session']),
    ...(request.network === 'full' ? ['--share-net'] : []),
    ...['--uid', '1000', '--gid', '1000', '--hostname', 'job', '--dir', '/etc', '--dir', '/run'],
    ...['--ro-bind', '/usr', '/usr'],
  ]
  const keep = ['PATH', 'HOME', 'LANG', 'TERM', 'DEPUTY_JOB', ...request.variables].join(' ')
  const start = request.root
    ? `exec unshare -m sh -c 'mount --bind "$1" /run/deputy/m && shift && exec setpriv --reuid ${request.uid} --regid ${request.uid} --clear-groups --no-new-privs -- bwrap "$@"' sh "$w"`
    : 'exec bwrap'
  return `w="$HOME"/${shellQuote(request.workspace)}
b=$w
${request.root ? `mkdir -p /run/deputy/m && chown -R ${request.uid}:${request.uid} "$w" || exit 126\nfor f in /proc/$$/fd/1 /proc/$$/fd/2; do [ -p "$f" ] && chown ${request.uid} "$f"; done\nb=/run/deputy/m` : ''}
command=("$@")
set -- ${shellJoin(flags)}
for d in bin sbin lib lib64 lib32; do
  if [ -L "/$d" ]; then set -- "$@" --symlink "usr/$d" "/$d"; elif [ -d "/$d" ]; then set -- "$@" --ro-bind "/$d" "/$d"; fi
done
for f in ${SHOWN.join(' ')}; do [ -e "/etc/$f" ] && set -- "$@" --ro-bind "$(readlink -f "/etc/$f")" "/etc/$f"; done
set -- "$@" --proc /proc --ro-bind /proc/sys /proc/sys --dev /dev --tmpfs /dev/shm --tmpfs /tmp --dir /home --bind "$b" /work --symlink work /workspace --chdir /work --remount-ro /dev --remount-ro /
for v in $(compgen -e); do case ' ${keep} ' in *" $v "*) ;; *) unset "$v" ;; esac; done
export HOME=/work PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEPUTY_WORKSPACE=/work
${start} "$@" -- sh -c 'exec "$@"' sh "\${command[@]}"
`
}

const SHOWN = [
  'alternatives',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'localtime',
  'ssl',
  'ca-certificates',
  'ca-certificates.conf',
  'pki',
  'os-release',
  'services',
  'protocols',
  'passwd',
  'group',
  'hosts',
  'nsswitch.conf',
  'resolv.conf',
]
