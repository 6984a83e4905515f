import { AppError } from '../../jobs/errors.ts'
import { formatSize } from '../../jobs/sizes.ts'
import { DEFAULT_IMAGE, listImages, removeImage, type VmImage } from '../../providers/microvm/image-store.ts'
import { usage } from '../args/parse.ts'
import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import type { Context } from '../context.ts'
import { INTERRUPTED } from '../exit-status.ts'
import { onInterrupt } from '../interrupt.ts'
import { age } from '../terminal/format.ts'
import { type Column, table } from '../terminal/table.ts'

export default defineCommand({
  usage: 'setup [flags] | images [rm NAME…]',
  description:
    'setup makes the image that VMs boot: a kernel and a read-only system of Debian packages. It takes a minute or two and needs a package mirror; root is not needed. It replaces an image of the same name: running VMs keep the old one. images lists them.',
  examples: [
    ['deputy microvm setup', 'Make the image that jobs use by default'],
    ['deputy microvm setup --packages nodejs,npm', 'Make it with more packages'],
    ['deputy run --runtime microvm -- uname -r', 'Run a command in a VM of its own'],
    ['deputy microvm images rm old', 'Remove an image'],
  ],
  flags: {
    name: { type: 'string', value: 'NAME', summary: 'setup: name of the image (default)' },
    packages: { type: 'string', value: 'NAMES', summary: 'setup: more Debian packages, with commas' },
    suite: { type: 'string', value: 'NAME', summary: 'setup: release of Debian (trixie)' },
    mirror: {
      type: 'string',
      value: 'URL',
      summary: 'setup: mirror of Debian (http://deb.debian.org/debian)',
    },
    json: JSON_FLAG,
  },
  words: ['setup', 'images'],
  async run(context, { flags, args }) {
    const [verb, action, ...names] = args
    const imagesDir = context.home.vmImages
    if (verb === 'setup' && action === undefined) {
      const image = await setUp(context, flags)
      if (image === undefined) return INTERRUPTED
      if (flags.json) return context.printJson(viewOf(image))
      return context.print(
        `Made the image '${image.name}' (${formatSize(image.bytes)}) in ${image.directory}\nTry: deputy run --runtime microvm -- uname -r\n`,
      )
    }
    if (verb === 'images' && action === 'rm' && names.length > 0) {
      for (const name of names) removeImage(imagesDir, name)
      if (flags.json) return context.printJson(names.map(name => ({ name, removed: true })))
      return context.print(names.map(name => `${name} removed\n`).join(''))
    }
    if (verb !== 'images' || action !== undefined)
      throw usage('Use microvm setup, microvm images or microvm images rm NAME.', 'microvm')
    const images = listImages(imagesDir)
    if (flags.json) return context.printJson(images.map(viewOf))
    if (images.length === 0) return context.print('No images. Make one: deputy microvm setup\n')
    return context.print(table(images, COLUMNS, { width: context.out.columns, heading: context.colors.dim }))
  },
})

interface SetupFlags {
  readonly name?: string | undefined
  readonly packages?: string | undefined
  readonly suite?: string | undefined
  readonly mirror?: string | undefined
}

/** Undefined when the user has interrupted it; then nothing is left. */
const setUp = async (
  { home, err }: Context,
  { name = DEFAULT_IMAGE, packages = '', ...flags }: SetupFlags,
): Promise<VmImage | undefined> => {
  const { buildImage, MIRROR, SUITE } = await import('../../providers/microvm/build-image.ts')
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new AppError(
      'unsupported',
      `VMs need Linux on x86-64, not ${process.platform} on ${process.arch}.`,
      {
        hint: 'Use another runtime: deputy doctor',
      },
    )
  const stop = new AbortController()
  const interrupts = onInterrupt(
    () => stop.abort(),
    () => process.exit(INTERRUPTED),
  )
  try {
    return await buildImage({
      ...{ imagesDir: home.vmImages, name, suite: flags.suite ?? SUITE, mirror: flags.mirror ?? MIRROR },
      packages: packages.split(',').filter(Boolean),
      onProgress: what => void err.write(`${what}\n`),
      signal: stop.signal,
    })
  } catch (error) {
    if (stop.signal.aborted) return undefined
    throw error
  } finally {
    interrupts.dispose()
  }
}

const viewOf = ({ name, kernel, contents, bytes, directory, createdAt }: VmImage) => ({
  ...{ name, kernel, contents, bytes, directory },
  created_at: new Date(createdAt).toISOString(),
})

const COLUMNS: Column<VmImage>[] = [
  { title: 'NAME', value: image => image.name },
  { title: 'CONTENTS', value: image => image.contents },
  { title: 'KERNEL', value: image => image.kernel },
  { title: 'SIZE', value: image => formatSize(image.bytes), align: 'right' },
  { title: 'AGE', value: image => age(new Date(image.createdAt).toISOString()), align: 'right' },
]
