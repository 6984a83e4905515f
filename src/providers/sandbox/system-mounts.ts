import { lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs'

/** A read-only entry of the sandbox's file system. */
export type MountEntry =
  | { readonly kind: 'bind'; readonly source: string; readonly target: string; readonly isDirectory: boolean }
  | { readonly kind: 'link'; readonly to: string; readonly target: string }
  /** A small generated file. */
  | { readonly kind: 'text'; readonly text: string; readonly target: string }

/** Whether the path is below a world-readable system directory that every sandbox mounts, at least partly. */
export const isSystemPath = (path: string): boolean =>
  /^\/(usr|bin|sbin|lib|lib32|lib64|libx32|etc|nix\/store)(\/|$)/.test(path)

/** System directories. They contain no user data. */
const SYSTEM_DIRS = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/lib32', '/libx32', '/nix/store']

/** Entries of /etc that programs need. None contains secrets or user names. */
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
/** Directories that a job can write to. */
export const WRITABLE_DIRS = [
  { name: 'shm', target: '/dev/shm', mode: '1777' },
  { name: 'tmp', target: '/tmp', mode: '1777' },
  { name: 'home', target: '/home/job', mode: '0700' },
  { name: 'work', target: '/work', mode: '0755' },
] as const

const BYTES_PER_INODE = 4096
const MIN_INODES = 1024

/**
 * Options of a tmpfs of this size. Each file costs about a kilobyte of kernel memory besides its contents, so the
 * number of inodes is limited, too: one per page.
 */
export const diskOptions = (bytes: number): string =>
  `mode=755,nosuid,nodev,size=${bytes},nr_inodes=${Math.max(MIN_INODES, Math.ceil(bytes / BYTES_PER_INODE))}`
/** Directories to mount over, in a private mount namespace. */
export const STAGING_DIRS = ['/mnt', '/media', '/srv', '/tmp']

export const bind = (source: string, target: string): MountEntry => ({
  kind: 'bind',
  source,
  target,
  isDirectory: statSync(source).isDirectory(),
})

/** Read-only mounts of the system. The host's network needs its resolver and host names, too. */
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

/** On most systems /bin, /lib and others are links into /usr. */
const mountOrLink = (path: string): MountEntry[] => {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return []
  if (stat.isSymbolicLink()) return [{ kind: 'link', to: readlinkSync(path), target: path }]
  return [bind(path, path)]
}

/** Mounts the target of a link that leads outside the sandbox, such as resolv.conf of systemd. */
const mountTarget = (path: string): MountEntry[] => {
  try {
    const source = realpathSync(path)
    return [bind(source, path)]
  } catch {
    return []
  }
}
