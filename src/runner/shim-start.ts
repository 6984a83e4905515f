import { z } from 'zod'

const texts = z.array(z.string()).readonly()

export const machineLimits = z.object({
  memory: z.number(),
  disk: z.number(),
  cpu: z.number(),
  processes: z.number(),
})

/** What a shim must know of a run besides the command. It contains secrets and must not be written to disk. */
export const shimStart = z.object({
  /** Private directory for the log and the result. */
  dir: z.string(),
  limits: machineLimits,
  network: z.union([z.enum(['none', 'full']), texts]),
  /** Programs outside the system directories that the command may read. */
  programs: texts,
  /** Passed as environment, redacted from everything the run returns. */
  secrets: z.record(z.string(), z.string()),
  format: z.enum(['text', 'claude-stream-json']),
  timeoutSeconds: z.number(),
  lifecycle: z.enum(['ephemeral', 'persistent']),
  /** The run needs a machine that was kept. */
  continues: z.boolean(),
  /** Tar files on this computer to unpack first, in order. */
  inputs: z.array(z.object({ path: z.string(), into: z.enum(['workspace', 'root']) })).readonly(),
  /** The tar that the workspace started from, when a patch is wanted. */
  patchBase: z.string().nullable(),
  wantsPatch: z.boolean(),
  /** Files of the manifest, relative to the workspace. They are not part of the patch. */
  givenFiles: texts,
  artifacts: texts,
  keep: z.object({
    head: z.number(),
    tail: z.number(),
    artifactFiles: z.number(),
    artifactBytes: z.number(),
    patchBytes: z.number(),
  }),
})

export type MachineLimits = z.output<typeof machineLimits>
export type ShimStart = z.output<typeof shimStart>
