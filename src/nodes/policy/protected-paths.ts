import { posix } from 'node:path'

/** Stands for text that only running the command would show. The character is removed from the input. */
export const UNKNOWN = '\uE000'

/** Five levels deep, so that only `../../../../..` leads from it to the root. */
export const UNKNOWN_DIRECTORY = `/${UNKNOWN}`.repeat(5)

/** `~` and `$HOME`, for any user. */
export const HOME = '/home/~'

type Protected = 'root' | 'system' | 'home'

/** Says what deleting or changing the whole path destroys; undefined for an ordinary path. */
export const protectedBy = (path: string, cwd: string): Protected | undefined => {
  const parts = segments(path, cwd)
  // Deleting `/etc/*` does the same damage as deleting `/etc`.
  while (parts.length > 0 && isCatchAll(parts.at(-1)!)) parts.pop()
  const [first, second, third, ...deeper] = parts
  if (first === undefined) return 'root'
  if (second === undefined) return isSystemDirectory(first)
  if (third === undefined && HOMES.has(first) && !NO_HOMES.has(second)) return 'home'
  return deeper.length === 0 && SYSTEM_SUBDIRECTORIES.has(parts.join('/')) ? 'system' : undefined
}

/** Files that logins and every program need, and globs that match all of them. */
export const isVitalFile = (path: string, cwd: string): boolean => {
  const parts = segments(path, cwd)
  if (VITAL_FILE.test(parts.join('/'))) return true
  return parts.length > 0 && isCatchAll(parts.at(-1)!) && VITAL_DIRECTORY.test(parts.slice(0, -1).join('/'))
}

export const isAccountFile = (path: string, cwd: string): boolean =>
  ACCOUNT_FILE.test(segments(path, cwd).join('/'))

/** A disk, a partition, a volume, or the memory of the machine. */
export const isDisk = (path: string, cwd: string): boolean => {
  const [dev, ...name] = segments(path, cwd)
  return dev === 'dev' && name.length > 0 && DISK.test(name.join('/').replace(GLOB, '0'))
}

export const resolvePath = (path: string, cwd: string): string =>
  posix
    .resolve(cwd, path)
    .replace(/^\/proc\/[^/]+\/root(?=\/|$)/, '')
    .replace(/^\/private(?=\/(?:etc|var)(?:\/|$))/, '') || '/'

const segments = (path: string, cwd: string): string[] =>
  resolvePath(path, cwd)
    .split('/')
    .filter(part => part !== '')

const GLOB = /[*?]|\[[^\]]*\]/g

/** `*`, `.*`, `[a-z]*`: patterns that match nearly every name. */
const isCatchAll = (part: string): boolean =>
  /[*?]/.test(part) && part.replace(GLOB, '').replace('.', '') === ''

const isSystemDirectory = (name: string): Protected | undefined => {
  const glob = name.search(/[*?[]/)
  if (glob < 0) return SYSTEM_DIRECTORIES.has(name) ? 'system' : undefined
  const prefix = name.slice(0, glob)
  return [...SYSTEM_DIRECTORIES].some(directory => directory.startsWith(prefix)) ? 'root' : undefined
}

/** A set of the words of a text. */
export const words = (text: string): Set<string> => new Set(text.trim().split(/\s+/))

const SYSTEM_DIRECTORIES = words(
  'bin boot dev etc home lib lib32 lib64 opt proc root run sbin srv sys usr var Applications Library System Users Volumes private',
)
const SYSTEM_SUBDIRECTORIES = words(`
  usr/bin usr/sbin usr/lib usr/lib32 usr/lib64 usr/libexec usr/share usr/lib/systemd usr/lib/modules
  usr/lib/x86_64-linux-gnu usr/lib/aarch64-linux-gnu var/lib var/lib/dpkg var/lib/rpm var/lib/pacman
  boot/efi boot/EFI boot/grub boot/grub2 boot/loader lib/modules lib/systemd lib/firmware
  lib/x86_64-linux-gnu lib/aarch64-linux-gnu etc/ssh etc/pam.d etc/systemd
  System/Library System/Volumes/Data Library/Preferences Library/Keychains`)
const HOMES = words('home Users')
const NO_HOMES = words('lost+found linuxbrew Shared')
const ACCOUNT_FILE = /^etc\/(?:passwd|shadow|group|gshadow|sudoers)$/
const VITAL_FILE =
  /^etc\/(?:passwd|shadow|group|gshadow|sudoers)$|^(?:usr\/)?bin\/(?:ba|da)?sh$|^(?:usr\/)?lib\w*(?:\/[\w-]+)?\/(?:libc\.so\.6|ld-linux[\w.-]*)$|^s?bin$|^lib(?:32|64)?$/
const VITAL_DIRECTORY = /^$|^(?:usr\/)?(?:s?bin|lib(?:32|64)?(?:\/[\w-]+-linux-gnu)?)$|^etc$|^boot$/
const DISK =
  /^(?:[shv]d[a-z0]+\d*|xvd[a-z]+\d*|nvme\d+(?:n\d+(?:p\d+)?)?|mmcblk\d+(?:p\d+|boot\d)?|dm-\d+|md\d+(?:p\d+)?|r?disk\d+(?:s\d+)*|sr\d+|nbd\d+|pmem\d+|zd\d+|mtd(?:block)?\d+|mapper\/.+|disk\/.+|md\/.+|zvol\/.+|block\/.+|mem|kmem|port)$|^(?!(?:bus|char|cpu|dri|fd|hugepages|input|mqueue|net|pts|serial|shm|snd|tcp|udp|usb|v4l|vfio)\/)[^/]+\/[^/]+$/
