import { z } from 'zod'
import { machineLimits } from '../../runner/shim-start.ts'

const cgroupRoot = z.discriminatedUnion('version', [
  z.object({
    version: z.literal(1),
    memory: z.string().nullable(),
    pids: z.string().nullable(),
    cpu: z.string().nullable(),
  }),
  z.object({ version: z.literal(2), path: z.string(), controllers: z.array(z.string()).readonly() }),
])

const backend = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('bwrap'),
    path: z.string(),
    disableUserns: z.boolean(),
    /** Whether all writable directories share one file system, with one limit of size and files. */
    oneDisk: z.boolean(),
  }),
  z.object({ type: z.literal('unshare'), seccompLoader: z.enum(['setpriv', 'perl']).nullable() }),
  z.object({ type: z.literal('none') }),
])

/** Arguments of a shim. Other processes can read them, so they contain no secrets. */
export const shimConfig = z.object({
  id: z.string(),
  dir: z.string(),
  runtime: z.enum(['sandbox', 'host']),
  /** How to build the sandbox. The daemon's probe decides. */
  backend,
  cgroup: cgroupRoot.nullable(),
  /** Prefix of cgroup names; identifies the daemon's home. */
  cgroupPrefix: z.string(),
  /** User ids of the machines when the daemon is root, one each. */
  uids: z.object({ first: z.int(), count: z.int() }).nullable(),
  /** How many machines it holds at most, those booted ahead of need included. */
  maxMachines: z.int(),
  /** Limits of the machines booted ahead of need. */
  warm: machineLimits,
  /** How many machines are booted ahead of need. */
  spareMachines: z.int(),
  /** Identifies the program. A daemon gives no jobs to the shims of another. */
  build: z.string(),
  maxJobs: z.int(),
  idleSeconds: z.number(),
})

/** Where the daemon can create cgroups: one directory per controller in version 1, a single one in version 2. */
export type CgroupRoot = Readonly<z.output<typeof cgroupRoot>>
export type Backend = Readonly<z.output<typeof backend>>
export type ShimConfig = Readonly<z.output<typeof shimConfig>>
