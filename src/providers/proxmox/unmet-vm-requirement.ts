import type { Manifest } from '../../jobs/manifest.ts'
import { needsContainer } from '../../jobs/needs-container.ts'
import type { Fit } from '../../ports.ts'
import { egressProblem } from './vm-egress.ts'

type Settings = Parameters<typeof egressProblem>[0]

/** Whether a Linux VM on the cluster could run it. */
export const fitsProxmox = (manifest: Manifest, provider: Settings): Fit => {
  const problem =
    (Array.isArray(manifest.network) && egressProblem(provider)) ||
    (needsContainer(manifest) ?? problemWith(manifest))
  return problem === undefined ? { ok: true } : { ok: false, reason: problem }
}

const problemWith = ({ requires }: Manifest): string | undefined => {
  if (requires?.os !== undefined && requires.os.toLowerCase() !== 'linux')
    return `it runs Linux, not ${requires.os}`
  if (requires?.arch !== undefined && !['x86_64', 'amd64', 'x64'].includes(requires.arch.toLowerCase()))
    return `it runs on x86_64, not ${requires.arch}`
  const label = Object.keys(requires?.labels ?? {})[0]
  if (label !== undefined) return `its machines have no label '${label}'`
  if (requires?.node !== undefined) return 'it chooses the node itself'
  if (requires?.capabilities !== undefined && requires.capabilities.length > 0)
    return `it does not promise ${requires.capabilities.join(', ')}`
  return undefined
}
