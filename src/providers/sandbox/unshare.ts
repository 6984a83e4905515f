import { posix } from 'node:path'
import { shellQuote as quote } from '../../runner/shell-words.ts'
import type { MachineLimits } from '../../runner/shim-start.ts'
import { SYSTEM_PATH } from './bwrap.ts'
import { diskOptions, JOB_UID, type MountEntry, STAGING_DIRS } from './system-mounts.ts'

export interface UnshareOptions {
  readonly mounts: readonly MountEntry[]
  readonly topMounts: readonly MountEntry[]
  readonly limits: MachineLimits
  readonly hostNetwork: boolean
  /** Number of the fd that carries the seccomp filter. */
  readonly seccompFd: number
  readonly seccompLoader: 'setpriv' | 'perl' | null
}

/**
 * Builds a sandbox with util-linux only, for computers without bubblewrap. Mounts and dropped privileges are the
 * same, set up by a shell inside the new namespaces. It is slower, and has seccomp only where a program that
 * can load a filter is installed.
 */
export const unshareCommand = (options: UnshareOptions): string[] => [
  'unshare',
  ...[
    '--user',
    '--map-root-user',
    '--mount',
    '--pid',
    '--fork',
    '--kill-child',
    '--ipc',
    '--uts',
    '--cgroup',
  ],
  ...(options.hostNetwork ? [] : ['--net']),
  ...['--propagation', 'private', '--', '/bin/sh', '-c', setupScript(options)],
]

const setupScript = (options: UnshareOptions): string =>
  [
    'set -e',
    'fail() { echo "sandbox: $1" >&2; exit 98; }',
    `for stage in ${STAGING_DIRS.join(' ')} none; do [ -d $stage ] && break; done`,
    'mount -t tmpfs -o mode=755,size=4m tmpfs $stage || fail "a file system cannot be mounted"',
    'cd $stage',
    makeDirectories([...ROOT_DIRS, ...directoriesOf(options.mounts)]),
    // A read-only remount must keep the flags that the mount already has.
    'show() { mount -o bind,ro,nosuid,nodev "$1" "$2" 2>/dev/null || mount -o rbind,ro,nosuid,nodev "$1" "$2" 2>/dev/null || mount -o bind,ro,nosuid,nodev,noexec "$1" "$2" || fail "$1 cannot be shown"; }',
    ...options.mounts.flatMap(mountLines),
    'mount -t proc -o nosuid,nodev,noexec proc proc || fail "/proc cannot be mounted"',
    `mount -t tmpfs -o mode=755,size=1m,nosuid,noexec tmpfs dev`,
    'mkdir dev/shm dev/pts',
    'for device in null zero full random urandom tty; do : >dev/$device; mount --bind /dev/$device dev/$device; done',
    'mount -t devpts -o newinstance,ptmxmode=0666,mode=620,nosuid,noexec devpts dev/pts',
    'ln -s pts/ptmx dev/ptmx; ln -s /proc/self/fd dev/fd; n=0; for name in in out err; do ln -s /proc/self/fd/$n dev/std$name; n=$((n+1)); done',
    'mount -o remount,ro,nosuid,noexec tmpfs dev',
    // One tmpfs holds all writable directories. The last bind mount hides the mount point of the tmpfs.
    `mount -t tmpfs -o ${diskOptions(options.limits.disk)} tmpfs tmp || fail "a disk cannot be mounted"`,
    'mkdir -m 1777 tmp/shm tmp/tmp; mkdir -m 755 tmp/work; mkdir -m 700 tmp/home',
    'mount --bind tmp/shm dev/shm; mount --bind tmp/home home/job; mount --bind tmp/work work; ln -s work workspace; mount --bind tmp/tmp tmp',
    makeDirectories(directoriesOf(options.topMounts)),
    ...options.topMounts.flatMap(mountLines),
    ...(options.hostNetwork ? [] : ['ip link set lo up 2>/dev/null || true']),
    'hostname sandbox 2>/dev/null || true',
    // Allow one more user namespace, for the job's user id, and none after it.
    'echo 1 >proc/sys/user/max_user_namespaces || fail "user namespaces cannot be limited"',
    'mount --bind proc/sys proc/sys; mount -o remount,bind,ro,nosuid,nodev,noexec proc/sys',
    'mkdir old; pivot_root . old || fail "the root directory cannot be changed"',
    'cd /; umount -l old; rmdir old; mount -o remount,bind,ro,nosuid,nodev / || fail "the root directory stays writable"; cd /work',
    // The launcher keeps its environment, which identifies it; the job gets an empty one.
    `exec env -i PATH=${SYSTEM_PATH} unshare --user --map-user=${JOB_UID} --map-group=${JOB_UID} --keep-caps -- setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all --no-new-privs --pdeathsig KILL -- ${loader(options)} /bin/sh`,
  ].join('\n')

const ROOT_DIRS = ['proc', 'dev', 'tmp', 'home/job', 'work', 'run', 'etc']

const makeDirectories = (dirs: readonly string[]): string =>
  dirs.length === 0 ? ':' : `mkdir -p ${[...new Set(dirs)].map(quote).join(' ')}`

/** Directories to create for the mounts: the target, or the parent of a file. */
const directoriesOf = (mounts: readonly MountEntry[]): string[] =>
  mounts
    .map(item =>
      (item.kind === 'bind' && item.isDirectory ? item.target : posix.dirname(item.target)).slice(1),
    )
    .filter(dir => dir !== '')

const mountLines = (item: MountEntry): string[] => {
  const target = quote(item.target.slice(1))
  switch (item.kind) {
    case 'bind':
      return [...(item.isDirectory ? [] : [`: >${target}`]), `show ${quote(item.source)} ${target}`]
    case 'link':
      return [`ln -s ${quote(item.to)} ${target}`]
    case 'text':
      return [`printf %s ${quote(item.text)} >${target}`]
  }
}

/** Loads the filter and executes the command. Every Debian has Perl; setpriv has the option since 2.40. */
const loader = ({ seccompLoader, seccompFd }: UnshareOptions): string => {
  if (seccompLoader === 'setpriv') return `setpriv --seccomp-filter /proc/self/fd/${seccompFd} --`
  if (seccompLoader === 'perl') return `perl -e ${quote(perlLoader(seccompFd))}`
  return ''
}

const SECCOMP_CALL: Record<string, number> = { x64: 317, arm64: 277 }

const perlLoader = (fd: number): string =>
  [
    `open(my $file, "<&=", ${fd}) or die; binmode $file; local $/; my $filter = <$file>; close $file;`,
    'my $program = pack("S x![p] p", length($filter) / 8, $filter);',
    `syscall(${SECCOMP_CALL[process.arch] ?? -1}, 1, 0, $program) == 0 or die "sandbox: the seccomp filter was refused: $!";`,
    'exec { $ARGV[0] } @ARGV or die;',
  ].join(' ')
