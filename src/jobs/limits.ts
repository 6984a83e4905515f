const KIB = 1024
const MIB = 1024 * KIB

/** Hard limits of one job, independent of the configuration. */
export const LIMITS = {
  /** The manifest as JSON, files included. Larger inputs belong in a workspace. */
  manifestBytes: 16 * MIB,
  /** The kernel allows 128 KiB per argument; a longer task belongs in a file of `files`. */
  taskBytes: 120 * KIB,
  files: 1000,
  needs: 20,
  /** Members of one batch; each is a whole agent with its own machine. */
  agents: 16,
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

/** Default limits of what is kept of a job; the configuration can change them. */
export const KEPT = {
  /** First and last bytes of the output, both streams together. The middle is counted, not kept. */
  outputHeadBytes: 1 * MIB,
  outputTailBytes: 1 * MIB,
  artifactFiles: 1000,
  artifactBytes: 256 * MIB,
  patchBytes: 16 * MIB,
} as const
