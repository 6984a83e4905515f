import { AppError } from '../../jobs/errors.ts'
import type { Manifest } from '../../jobs/manifest.ts'
import { normalizeArch, normalizeOs } from '../../nodes/platform.ts'
import type { Fit } from '../../ports.ts'
import { INSTALL_HINT } from './container-engine.ts'
import { isAllowed } from './image-reference.ts'

export interface FitContext {
  /** The setting `container.image`. */
  readonly image?: string | undefined
  /** The setting `images.allow`. */
  readonly allow: readonly string[]
  isConfigured(): boolean
}

/** Whether a container could run the job. */
export const fitsContainer = (manifest: Manifest, context: FitContext): Fit => {
  // A kept container has its engine and its image already.
  const missing = manifest.machine === undefined ? missingForNew(manifest, context) : undefined
  if (missing !== undefined) return { ok: false, ...missing }
  const reason = unmet(manifest)
  return reason === undefined ? { ok: true } : { ok: false, reason }
}

const missingForNew = (
  manifest: Manifest,
  context: FitContext,
): { reason: string; hint: string } | undefined => {
  if (!context.isConfigured()) return { reason: 'no container engine was found', hint: INSTALL_HINT }
  const image = manifest.image ?? context.image
  if (image === undefined)
    return {
      reason: 'the job names no image',
      hint: 'Name one with --image, or set container.image in the configuration.',
    }
  return isAllowed(image, context.allow) ? undefined : refused(image)
}

export const assertImageAllowed = (image: string, allow: readonly string[]): void => {
  if (isAllowed(image, allow)) return
  const { reason, hint } = refused(image)
  throw new AppError('denied', `${reason.replace(/^t/, 'T')}.`, { hint })
}

const refused = (image: string): { reason: string; hint: string } => ({
  reason: `the image '${image}' matches no pattern of images.allow`,
  hint: `Add it to images.allow in the configuration, then: deputy daemon restart`,
})

const unmet = ({ requires, vmTemplate }: Manifest): string | undefined => {
  if (vmTemplate !== undefined) return `the template '${vmTemplate}' needs a virtual machine`
  if (requires?.os !== undefined && normalizeOs(requires.os) !== 'linux')
    return `it requires ${requires.os}, containers run linux`
  if (requires?.arch !== undefined && normalizeArch(requires.arch) !== normalizeArch(process.arch))
    return `it requires ${requires.arch}: name it with platform`
  const other = requires?.node ?? requires?.capabilities?.[0] ?? Object.keys(requires?.labels ?? {})[0]
  return other === undefined ? undefined : `it requires '${other}', which only a node can have`
}
