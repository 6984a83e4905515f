import { compileGlob, HOME, isGlob, UNKNOWN } from './text.ts'

export type Danger = 'root' | 'system' | 'home'

/** What a path names, if destroying it destroys the machine or the user's home. */
export const dangerOf = (arg: string, cwds: readonly string[]): Danger | undefined => {
  const dangers = cwds.map(cwd => dangerOfPath(resolvePath(arg, cwd)))
  return dangers.find(danger => danger === 'root') ?? dangers.find(danger => danger !== undefined)
}

/** Whether a path, read as names of files only, takes those that a system cannot be without. */
export const losesFiles = (arg: string, cwds: readonly string[]): Danger | undefined => {
  for (const path of cwds.map(cwd => resolvePath(arg, cwd))) {
    const parts = path.split('/').filter(part => part !== '')
    let depth = 0
    while (parts.length > 0 && matchesEverything(parts.at(-1)!)) {
      parts.pop()
      depth++
    }
    const folder = path.startsWith('/') ? `/${parts.join('/')}` : parts.join('/')
    if (depth > 1) {
      const danger = dangerOfPath(folder)
      if (danger) return danger
    }
    if (depth === 1 && (folder === '/' || FILES_NEEDED.test(folder)))
      return folder === '/' ? 'root' : 'system'
  }
  return undefined
}

const FILES_NEEDED = /^(?:\/usr)?\/(?:s?bin|lib(?:32|64)?(?:\/[\w-]+-linux-gnu)?)$|^\/(?:etc|boot)$/

export const isVitalFile = (arg: string, cwds: readonly string[]): boolean =>
  cwds.some(cwd => VITAL_FILE.test(resolvePath(arg, cwd)))

/** Accounts, shells, the C library, and the links that stand for the directories of programs. */
const VITAL_FILE =
  /^\/etc\/(?:passwd|shadow|group|gshadow|sudoers)$|^(?:\/usr)?\/bin\/(?:ba|da)?sh$|^(?:\/usr)?\/lib\w*(?:\/[\w-]+)?\/(?:libc\.so\.6|ld-linux[\w.-]*)$|^\/(?:s?bin|lib(?:32|64)?)$/

export const isDevice = (arg: string, cwds: readonly string[]): boolean =>
  cwds.some(cwd => isDevicePath(resolvePath(arg, cwd)))

/** Collapses `//`, `.` and `..`; `cwd` may be unknown, and then a relative path stays relative. */
export const resolvePath = (arg: string, cwd: string): string => {
  const joined = /^[/\uE000\uE001]/.test(arg) ? arg : `${cwd}/${arg}`
  const parts: string[] = []
  let climbed = 0
  for (const part of joined.split('/')) {
    if (part === '' || part === '.') continue
    if (part !== '..') parts.push(part)
    else if (parts.length > 0 && !parts[0]!.startsWith(UNKNOWN) && parts[0] !== HOME) parts.pop()
    else if (parts.length > 1) parts.pop()
    else climbed++
  }
  // Nobody's working directory is deeper than the climb: such a path ends at the root whatever it started from.
  if (climbed >= 6 || (joined.startsWith('/') && parts.length === 0)) return `/${parts.slice(1).join('/')}`
  const first = parts[0]
  if (first === HOME && climbed > 0) return climbed === 1 ? `/home/${parts.slice(1).join('/')}` : '/'
  if (first !== undefined && (first.startsWith(UNKNOWN) || first === HOME)) return parts.join('/')
  return throughProc(`/${parts.join('/')}`)
}

/** `/proc/1/root/…` is another name of `/…`. */
const throughProc = (path: string): string => {
  const match = /^\/proc\/[^/]+\/root(\/.*)?$/.exec(path)
  return match ? (match[1] ?? '/') : path
}

const dangerOfPath = (path: string): Danger | undefined => {
  if (path === '/') return 'root'
  const parts = path
    // macOS keeps /etc and /var there.
    .replace(/^\/private(?=\/(?:etc|var)(?:\/|$))/, '')
    .split('/')
    .filter(part => part !== '')
  // `/etc/*` is as good as `/etc`.
  while (parts.length > 1 && matchesEverything(parts.at(-1)!)) parts.pop()
  const [first, second, ...rest] = parts
  if (first === undefined || rest.length > 1) return undefined
  if (first === HOME) return second === undefined ? 'home' : undefined
  if (!path.startsWith('/')) return undefined
  if (second !== undefined) return dangerBelow(first, second, rest[0])
  if (isGlob(first)) {
    const reached = SYSTEM_DIRECTORIES.filter(compileGlob(first)).length
    return reached >= 2 || matchesEverything(first) ? 'root' : undefined
  }
  return SYSTEM_DIRECTORIES.includes(first) ? 'system' : undefined
}

/** The second level, where losing one directory is losing the machine, a user's home, or what is known of packages. */
const dangerBelow = (first: string, second: string, third: string | undefined): Danger | undefined => {
  if (third !== undefined) return NEEDED_DEEP.test(`${first}/${second}/${third}`) ? 'system' : undefined
  if (first === 'home' || first === 'Users') return NO_HOMES.has(second) ? undefined : 'home'
  return NEEDED_BELOW.get(first)?.has(second) ? 'system' : undefined
}

const NO_HOMES = new Set(['lost+found', 'linuxbrew', 'Shared'])
const NEEDED_DEEP =
  /^(?:var\/lib\/(?:dpkg|rpm|pacman)|usr\/lib\/(?:[\w-]+-linux-gnu|systemd|modules)|System\/Volumes\/Data)$/
const NEEDED_BELOW = new Map(
  Object.entries({
    usr: 'bin sbin lib lib32 lib64 libexec share',
    var: 'lib',
    boot: 'efi EFI grub grub2 loader',
    lib: 'modules systemd firmware x86_64-linux-gnu aarch64-linux-gnu',
    etc: 'ssh pam.d systemd',
    System: 'Library',
    Library: 'Preferences Keychains',
  }).map(([name, below]) => [name, new Set(below.split(' '))]),
)

const matchesEverything = (part: string): boolean =>
  isGlob(part) && ['anything', '.anything'].some(compileGlob(part))

const SYSTEM_DIRECTORIES = [
  'bin',
  'boot',
  'dev',
  'etc',
  'home',
  'lib',
  'lib32',
  'lib64',
  'opt',
  'proc',
  'root',
  'run',
  'sbin',
  'srv',
  'sys',
  'usr',
  'var',
  'Applications',
  'Library',
  'System',
  'Users',
  'Volumes',
  'private',
]

const isDevicePath = (path: string): boolean => {
  if (!path.startsWith('/dev/')) return false
  const name = path.slice('/dev/'.length)
  if (isGlob(name) || name.includes(UNKNOWN)) return DEVICE_SAMPLES.some(compileGlob(name))
  return DEVICE_NAME.test(name) || isVolume(name)
}

const DEVICE_NAME =
  /^(?:[shv]d[a-z]+\d*|xvd[a-z]+\d*|nvme\d+(?:n\d+(?:p\d+)?)?|mmcblk\d+(?:p\d+|boot\d|rpmb)?|dm-\d+|md\d+(?:p\d+)?|r?disk\d+(?:s\d+)*|sr\d+|nbd\d+(?:p\d+)?|pmem\d+|bcache\d+|drbd\d+|rbd\d+|zd\d+|mtd(?:block)?\d+|mapper\/.+|disk\/.+|md\/.+|zvol\/.+|block\/.+|mem|kmem|port)$/

const DEVICE_SAMPLES = [
  'sda',
  'sda1',
  'sdb',
  'vda',
  'vda1',
  'nvme0n1',
  'nvme0n1p1',
  'mmcblk0',
  'disk0',
  'disk0s1',
  'dm-0',
  'md0',
]

/** `/dev/vg/lv`: two names where the first is none of the directories every system has. */
const isVolume = (name: string): boolean => {
  const [group, volume, ...more] = name.split('/')
  return volume !== undefined && volume !== '' && more.length === 0 && !DEVICE_DIRECTORIES.has(group!)
}

const DEVICE_DIRECTORIES = new Set([
  'null',
  'zero',
  'full',
  'tty',
  'console',
  'stdin',
  'stdout',
  'stderr',
  'bus',
  'char',
  'cpu',
  'dri',
  'fd',
  'hugepages',
  'input',
  'mqueue',
  'net',
  'pts',
  'serial',
  'shm',
  'snd',
  'tcp',
  'udp',
  'usb',
  'v4l',
  'vfio',
])
