import { lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs'

/** One thing of this computer that the sandbox shows, read-only, at the same place. */
export type MountEntry =
  | { readonly kind: 'bind'; readonly source: string; readonly target: string; readonly isDirectory: boolean }
  | { readonly kind: 'link'; readonly to: string; readonly target: string }
  /** A small file of our own. */
  | { readonly kind: 'text'; readonly text: string; readonly target: string }

/** Whether everybody can read what is below this path, and every sandbox shows it or a part of it. */
export const isSystemPath = (path: string): boolean =>
  /^\/(usr|bin|sbin|lib|lib32|lib64|libx32|etc|nix\/store)(\/|$)/.test(path)

/** Directories of the system itself. Nothing of any user is below them. */
const SYSTEM_DIRS = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/lib32', '/libx32', '/nix/store']

/** What programs look up to run at all; nothing with secrets or names of people in it. */
const ETC_ENTRIES = [
  ...['alternatives', 'ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'localtime', 'timezone', 'mime.types'],
  ...['services', 'protocols', 'ssl', 'ca-certificates', 'ca-certificates.conf', 'pki', 'crypto-policies'],
  ...[
    'os-release',
    'debian_version',
    'terminfo',
    'fonts',
    'perl',
    'python3',
    'python3.11',
    'java-17-openjdk',
  ],
]

const PASSWD =
  'root:x:0:0:root:/root:/usr/sbin/nologin\njob:x:1000:1000:job:/home/job:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n'
const GROUP = 'root:x:0:\njob:x:1000:\nnogroup:x:65534:\n'
const HOSTS = '127.0.0.1 localhost sandbox\n::1 localhost\n'

export const JOB_UID = 1000
/** Where a job can write. */
export const WRITABLE_DIRS = [
  { name: 'shm', target: '/dev/shm', mode: '1777' },
  { name: 'tmp', target: '/tmp', mode: '1777' },
  { name: 'home', target: '/home/job', mode: '0700' },
  { name: 'work', target: '/work', mode: '0755' },
] as const

const BYTES_PER_INODE = 4096
const MIN_INODES = 1024

/**
 * Options of a tmpfs of this size. Each file costs about a kilobyte of kernel memory besides its contents, so their
 * number is bounded with the size: one for each page.
 */
export const diskOptions = (bytes: number): string =>
  `mode=755,nosuid,nodev,size=${bytes},nr_inodes=${Math.max(MIN_INODES, Math.ceil(bytes / BYTES_PER_INODE))}`
/** Places to mount over, in a mount namespace that is ours alone. */
export const STAGING_DIRS = ['/mnt', '/media', '/srv', '/tmp']

export const bind = (source: string, target: string): MountEntry => ({
  kind: 'bind',
  source,
  target,
  isDirectory: statSync(source).isDirectory(),
})

/** The read-only part of the sandbox. With the host's network come its resolver and host names. */
export const systemMounts = (hostNetwork: boolean): MountEntry[] => [
  ...SYSTEM_DIRS.flatMap(path => mountOrLink(path)),
  ...ETC_ENTRIES.flatMap(name => mountTarget(`/etc/${name}`)),
  { kind: 'text', text: PASSWD, target: '/etc/passwd' },
  { kind: 'text', text: GROUP, target: '/etc/group' },
  ...(hostNetwork
    ? ['resolv.conf', 'hosts', 'nsswitch.conf', 'gai.conf'].flatMap(name => mountTarget(`/etc/${name}`))
    : [
        { kind: 'text', text: HOSTS, target: '/etc/hosts' } as const,
        { kind: 'text', text: 'hosts: files\n', target: '/etc/nsswitch.conf' } as const,
      ]),
]

/** On most systems /bin and its kin are links into /usr. */
const mountOrLink = (path: string): MountEntry[] => {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return []
  if (stat.isSymbolicLink()) return [{ kind: 'link', to: readlinkSync(path), target: path }]
  return [bind(path, path)]
}

/** The file itself where it is a link to somewhere the sandbox does not show (resolv.conf of systemd). */
const mountTarget = (path: string): MountEntry[] => {
  try {
    const source = realpathSync(path)
    return [bind(source, path)]
  } catch {
    return []
  }
}
