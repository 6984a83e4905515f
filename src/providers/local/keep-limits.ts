import { KEPT } from '../../jobs/limits.ts'
import type { KeepLimits } from './shim-protocol.ts'

/** How much of a job is kept: the configured values over the defaults. */
export const keepLimits = (given: Partial<KeepLimits> = {}): KeepLimits => ({
  head: KEPT.outputHeadBytes,
  tail: KEPT.outputTailBytes,
  artifactFiles: KEPT.artifactFiles,
  artifactBytes: KEPT.artifactBytes,
  patchBytes: KEPT.patchBytes,
  ...given,
})
