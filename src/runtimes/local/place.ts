import { hostname } from 'node:os'
import type { Manifest } from '../../jobs/manifest.ts'

const ARCHITECTURES: Record<string, readonly string[]> = {
  x64: ['x64', 'x86_64', 'amd64'],
  arm64: ['arm64', 'aarch64'],
}

/** What no local runtime can give, whichever it is. */
export const placeProblem = (manifest: Manifest): string | undefined => {
  const { requires, vmTemplate } = manifest
  if (vmTemplate !== undefined) return `the template '${vmTemplate}' needs a virtual machine`
  if (requires?.os !== undefined && requires.os.toLowerCase() !== process.platform)
    return `it requires ${requires.os}, this computer runs ${process.platform}`
  const names = ARCHITECTURES[process.arch] ?? [process.arch]
  if (requires?.arch !== undefined && !names.includes(requires.arch.toLowerCase()))
    return `it requires ${requires.arch}, this computer is ${process.arch}`
  const capability = requires?.capabilities?.[0]
  if (capability !== undefined)
    return `it requires '${capability}', which only a node or a virtual machine can have`
  const node = requires?.node
  if (node !== undefined && ![hostname(), 'local', 'localhost'].includes(node))
    return `it must run on the node '${node}'`
  return undefined
}
