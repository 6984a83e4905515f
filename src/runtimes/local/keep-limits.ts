import { KEPT } from '../../jobs/limits.ts'
import type { KeepLimits } from './shim-protocol.ts'

/** How much of a job is kept: what was configured, else the defaults. */
export const keepLimits = (given: Partial<KeepLimits> = {}): KeepLimits => ({
  head: KEPT.outputHeadBytes,
  tail: KEPT.outputTailBytes,
  artifactFiles: KEPT.artifactFiles,
  artifactBytes: KEPT.artifactBytes,
  patchBytes: KEPT.patchBytes,
  ...given,
})
