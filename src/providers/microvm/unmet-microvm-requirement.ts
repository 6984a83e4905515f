import type { Manifest } from '../../jobs/manifest.ts'
import { needsContainer } from '../../jobs/needs-container.ts'
import { normalizeArch, normalizeOs } from '../../nodes/platform.ts'
import type { Fit } from '../../ports.ts'
import { findImage } from './image-store.ts'

export interface FitContext {
  readonly imagesDir: string
  readonly image: string
}

/** Whether a VM on this computer could run the job. */
export const fitsMicrovm = (manifest: Manifest, { imagesDir, image }: FitContext): Fit => {
  const reason = unmet(manifest)
  if (reason !== undefined) return { ok: false, reason }
  // A kept VM has booted already.
  if (manifest.machine === undefined && findImage(imagesDir, image) === undefined)
    return { ok: false, ...noImage(image) }
  return { ok: true }
}

export const noImage = (image: string): { reason: string; hint: string } => ({
  reason: `there is no VM image '${image}'`,
  hint: `Make it: deputy microvm setup${image === 'default' ? '' : ` --name ${image}`}`,
})

const unmet = (manifest: Manifest): string | undefined => {
  const { requires, vmTemplate } = manifest
  if (vmTemplate !== undefined) return `the template '${vmTemplate}' is one of Proxmox VE`
  if (requires?.os !== undefined && normalizeOs(requires.os) !== 'linux')
    return `it requires ${requires.os}, VMs on this computer run linux`
  if (requires?.arch !== undefined && normalizeArch(requires.arch) !== normalizeArch(process.arch))
    return `it requires ${requires.arch}, VMs on this computer have ${process.arch}`
  const other = requires?.node ?? requires?.capabilities?.[0] ?? Object.keys(requires?.labels ?? {})[0]
  return other === undefined ? needsContainer(manifest) : `it requires '${other}', which only a node can have`
}
