import { hostname } from 'node:os'
import type { Manifest } from '../../jobs/manifest.ts'
import { needsContainer } from '../../jobs/needs-container.ts'
import { normalizeArch, normalizeOs } from '../../nodes/platform.ts'

/** Returns the requirement that no local provider can meet. */
export const unmetLocalRequirement = (manifest: Manifest): string | undefined => {
  const { requires, vmTemplate } = manifest
  const container = needsContainer(manifest)
  if (container !== undefined) return container
  if (vmTemplate !== undefined) return `the template '${vmTemplate}' needs a virtual machine`
  const [os, arch] = [normalizeOs(process.platform), normalizeArch(process.arch)]
  if (requires?.os !== undefined && normalizeOs(requires.os) !== os)
    return `it requires ${requires.os}, this computer runs ${os}`
  if (requires?.arch !== undefined && normalizeArch(requires.arch) !== arch)
    return `it requires ${requires.arch}, this computer is ${arch}`
  const capability = requires?.capabilities?.[0]
  if (capability !== undefined)
    return `it requires '${capability}', which only a node or a virtual machine can have`
  const label = Object.keys(requires?.labels ?? {})[0]
  if (label !== undefined) return `it requires the label '${label}', which only a node can have`
  const node = requires?.node
  if (node !== undefined && ![hostname(), 'local', 'localhost'].includes(node))
    return `it must run on the node '${node}'`
  return undefined
}
