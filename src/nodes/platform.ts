/** Maps the names that `uname`, Node and users have for a system to one. */
export const normalizeOs = (name: string): string => {
  const os = name.trim().toLowerCase()
  return OS_NAMES.get(os) ?? os
}

export const normalizeArch = (name: string): string => {
  const arch = name.trim().toLowerCase()
  return ARCH_NAMES.get(arch) ?? arch
}

const OS_NAMES = new Map(
  Object.entries<string>({
    darwin: 'macos',
    mac: 'macos',
    osx: 'macos',
    'mac os x': 'macos',
    'gnu/linux': 'linux',
    win32: 'windows',
  }),
)

const ARCH_NAMES = new Map(
  Object.entries<string>({
    amd64: 'x86_64',
    x64: 'x86_64',
    'x86-64': 'x86_64',
    aarch64: 'arm64',
    armv8: 'arm64',
    i386: 'x86',
    i686: 'x86',
  }),
)
