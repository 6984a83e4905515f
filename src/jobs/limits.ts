const KIB = 1024
const MIB = 1024 * KIB

/** What one job may ask for or leave behind, whatever the configuration says. */
export const LIMITS = {
  /** Whole manifest as JSON, files included. Larger inputs travel as a workspace. */
  manifestBytes: 16 * MIB,
  /** The kernel takes 128 KiB for one argument; a longer task belongs into a file of `files`. */
  taskBytes: 120 * KIB,
  files: 1000,
  env: 200,
  envValueBytes: 64 * KIB,
  secrets: 50,
  labels: 20,
  artifactGlobs: 50,
  domains: 100,
  timeoutSeconds: 86_400,
  leaseSeconds: 7 * 86_400,
  queueSeconds: 30 * 86_400,
  pathBytes: 1024,
  progressBytes: 1 * KIB,
} as const

/** Defaults of what is kept of a job; the configuration can change them. */
export const KEPT = {
  /** First and last bytes of the output, of both streams together; the middle is counted, not kept. */
  outputHeadBytes: 1 * MIB,
  outputTailBytes: 1 * MIB,
  artifactFiles: 1000,
  artifactBytes: 256 * MIB,
  patchBytes: 16 * MIB,
} as const
