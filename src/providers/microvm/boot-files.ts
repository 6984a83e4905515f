import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../jobs/errors.ts'
import { type CpioEntry, cpioArchive } from './cpio-archive.ts'
import { resolveModules } from './kernel-modules.ts'
import { unpackKernel } from './unpack-kernel.ts'

const MODULES = ['virtio_pci', 'virtio_blk', 'virtio_console', 'squashfs', 'overlay']

export interface BootFiles {
  readonly release: string
  readonly kernel: Buffer
  /** The initrd without its programs, which are those of the daemon: an image outlives its version. */
  readonly initrd: Buffer
}

/** What a VM boots, from the unpacked packages of a kernel and of a static busybox. */
export const makeBootFiles = (packageDirectory: string): BootFiles => {
  const boot = join(packageDirectory, 'boot')
  const image = readdirSync(boot).find(name => name.startsWith('vmlinuz-'))
  if (image === undefined) throw new AppError('unsupported', `There is no kernel in ${boot}.`)
  const release = image.slice('vmlinuz-'.length)
  const find = (paths: readonly string[], what: string): string => {
    const found = paths.map(path => join(packageDirectory, path)).find(path => existsSync(path))
    if (found === undefined) throw new AppError('unsupported', `The kernel ${release} comes without ${what}.`)
    return found
  }
  const modules = find([`usr/lib/modules/${release}`, `lib/modules/${release}`], 'modules')
  const busybox = find(['usr/bin/busybox', 'bin/busybox'], 'busybox')
  return {
    release,
    kernel: unpackKernel(readFileSync(join(boot, image))),
    initrd: makeInitrd(modules, readFileSync(busybox)),
  }
}

const makeInitrd = (modulesDirectory: string, busybox: Buffer): Buffer => {
  const modules = resolveModules(modulesDirectory, MODULES)
  const directories: CpioEntry[] = ['dev', 'proc', 'image', 'upper', 'root'].map(path => ({ path }))
  return cpioArchive([
    ...directories,
    { path: 'busybox', content: busybox, executable: true },
    { path: 'modules', content: modules.map(({ name }) => `${name}.ko\n`).join('') },
    ...modules.map(({ name, content }) => ({ path: `${name}.ko`, content })),
  ])
}
