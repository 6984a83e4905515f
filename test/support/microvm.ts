import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildImage, MIRROR, SUITE } from '../../src/providers/microvm/build-image.ts'
import { findImage } from '../../src/providers/microvm/image-store.ts'
import { missingTools } from '../../src/providers/microvm/required-tools.ts'

const SOURCE = fileURLToPath(new URL('../../src/providers/microvm', import.meta.url))
const CACHE = fileURLToPath(new URL('../../.cache/microvm', import.meta.url))

export type VmImages =
  | { readonly imagesDir: string; readonly image: string; readonly missing?: never }
  | { readonly imagesDir?: never; readonly image?: never; readonly missing: string }

/** An image for the VMs of tests, made on first use and after every change of what it is made by, or why there is none. */
export const testImage = async (): Promise<VmImages> => {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return { missing: 'VMs are made on Linux on x86-64 only' }
  const [absent] = [...missingTools('run'), ...missingTools('build')]
  if (absent !== undefined)
    return { missing: `${absent.program} is not installed: run test/vm/image/setup.sh` }
  const image = `test-${recipeDigest()}`
  if (findImage(CACHE, image) === undefined)
    await buildImage({
      ...{ imagesDir: CACHE, name: image, packages: [], suite: SUITE },
      mirror: process.env.DEPUTY_VM_MIRROR ?? MIRROR,
      onProgress: () => undefined,
      signal: AbortSignal.timeout(600_000),
    })
  return { imagesDir: CACHE, image }
}

const recipeDigest = (): string => {
  const hash = createHash('sha256')
  const names = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).sort()
  for (const name of names.filter(one => /(?:build-image|boot-files|kernel|cpio)[^/]*$/.test(one)))
    hash.update(name).update(readFileSync(join(SOURCE, name)))
  return hash.digest('hex').slice(0, 12)
}
