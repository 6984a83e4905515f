import type { Fault } from '../fault.ts'
import type { Random } from '../random.ts'
import type { World } from '../world.ts'

/** A way to run jobs. A new one needs a file here and a line in `index.ts`. */
export interface Provider {
  readonly name: string
  /** Left out of a run that names no providers. */
  readonly onlyByName?: boolean
  /** What this computer lacks for it. */
  missing(): string | undefined
  open(world: World): Promise<OpenProvider>
}

export interface OpenProvider {
  /** Sections of the configuration file. */
  readonly config?: Readonly<Record<string, unknown>>
  readonly env?: Readonly<Record<string, string>>
  /** The part of a manifest that sends a job here. */
  place(random: Random): Readonly<Record<string, unknown>>
  /** Shell code that counts a run; absent where jobs can write to the FIFO of the ledger. */
  entry?(key: string): string
  /** Faults that only this provider knows. */
  readonly faults: readonly Fault[]
  /** Processes that belong to the test, not to the product. */
  pids(): readonly number[]
  /** Whether a mount is one that the equipment leaves when it is killed. */
  ownsMount?(line: string): boolean
  /** What is still there when no job and no machine is recorded any more. */
  leftovers(): Promise<readonly string[]>
  close(): Promise<void>
}
