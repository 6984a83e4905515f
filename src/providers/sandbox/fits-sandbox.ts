import type { Manifest } from '../../jobs/manifest.ts'
import { formatSize } from '../../jobs/sizes.ts'
import type { Fit } from '../../ports.ts'
import type { MachineLimits } from '../../runner/shim-start.ts'
import { limitsOf } from '../local/local-provider.ts'
import { MEMORY_BYTES, PROCESSORS } from '../local/this-computer.ts'
import { unmetLocalRequirement } from '../local/unmet-local-requirement.ts'

/** Whether this computer can run the job in a sandbox. */
export const fitsSandbox = (manifest: Manifest, defaults: MachineLimits): Fit => {
  const problem = unmetLocalRequirement(manifest) ?? resourceProblem(limitsOf(manifest, defaults))
  return problem === undefined ? { ok: true } : { ok: false, reason: problem }
}

/** The workspace is in memory, so disk and memory share the RAM. */
const resourceProblem = (limits: MachineLimits): string | undefined => {
  if (limits.cpu > PROCESSORS) return `it asks for ${limits.cpu} processors, this computer has ${PROCESSORS}`
  if (limits.memory + limits.disk > MEMORY_BYTES)
    return `it asks for ${formatSize(limits.memory)} of memory and ${formatSize(limits.disk)} of disk held in memory, this computer has ${formatSize(MEMORY_BYTES)}`
  return undefined
}
