import { chmodSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../jobs/errors.ts'

/** What a VM boots from, as `deputy microvm setup` made it. */
export interface VmImage {
  readonly name: string
  /** Holds `vmlinux`, `initrd` and `root.squashfs`. */
  readonly directory: string
  readonly kernel: string
  readonly contents: string
  readonly createdAt: number
  readonly bytes: number
}

export const DEFAULT_IMAGE = 'default'
const NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/

export const assertImageName = (name: string): void => {
  if (NAME.test(name)) return
  throw new AppError('invalid', `Invalid image name '${name}'.`, {
    hint: 'Use lowercase letters, digits, dots and dashes, such as python-3.13.',
  })
}

export const findImage = (imagesDir: string, name: string): VmImage | undefined => {
  assertImageName(name)
  const directory = join(imagesDir, name)
  try {
    const about = JSON.parse(readFileSync(join(directory, 'image.json'), 'utf8')) as Record<string, unknown>
    const bytes = ['vmlinux', 'initrd', 'root.squashfs'].reduce(
      (sum, file) => sum + statSync(join(directory, file)).size,
      0,
    )
    return {
      ...{ name, directory, bytes, createdAt: Number(about.createdAt) },
      ...{ kernel: String(about.kernel), contents: String(about.contents) },
    }
  } catch {
    return undefined
  }
}

export const listImages = (imagesDir: string): VmImage[] => {
  let names: string[] = []
  try {
    names = readdirSync(imagesDir)
  } catch {
    // None was made yet.
  }
  return names
    .filter(name => NAME.test(name))
    .sort()
    .flatMap(name => findImage(imagesDir, name) ?? [])
}

/** Running VMs keep the files that they have open. */
export const removeImage = (imagesDir: string, name: string): void => {
  if (findImage(imagesDir, name) === undefined)
    throw new AppError('not_found', `There is no image '${name}'.`, {
      hint: 'List them: deputy microvm images',
    })
  rmSync(join(imagesDir, name), { recursive: true })
}

/** Puts a finished directory in place of the image of this name. */
export const storeImage = (
  imagesDir: string,
  { name, from, kernel, contents }: { name: string; from: string; kernel: string; contents: string },
): VmImage => {
  assertImageName(name)
  writeFileSync(join(from, 'image.json'), JSON.stringify({ kernel, contents, createdAt: Date.now() }))
  // QEMU has a user id of its own, and must read them.
  for (const file of readdirSync(from)) chmodSync(join(from, file), 0o644)
  chmodSync(from, 0o755)
  const target = join(imagesDir, name)
  rmSync(target, { recursive: true, force: true })
  renameSync(from, target)
  return findImage(imagesDir, name)!
}
