import { KEPT } from '../jobs/limits.ts'

/** How much of a job is kept, in bytes and files. */
export interface KeepLimits {
  /** Of the output, from its beginning. */
  readonly head: number
  /** Of the output, from its end. */
  readonly tail: number
  readonly artifactFiles: number
  readonly artifactBytes: number
  readonly patchBytes: number
}

/** The configured values over the defaults. */
export const keepLimits = (given: Partial<KeepLimits> = {}): KeepLimits => ({
  head: KEPT.outputHeadBytes,
  tail: KEPT.outputTailBytes,
  artifactFiles: KEPT.artifactFiles,
  artifactBytes: KEPT.artifactBytes,
  patchBytes: KEPT.patchBytes,
  ...given,
})
