import type { RunOptions } from '../../runner/run.ts'
import type { SealingKeys } from '../../runner/sealed-context.ts'
import type { GuestLinks } from './guest-links.ts'
import type { VmSize } from './qemu-command.ts'
import type { Snapshots } from './snapshots.ts'

/** What the parts of the provider share. */
export interface ProviderContext {
  readonly runner: Pick<RunOptions, 'blobs' | 'keep' | 'graceSeconds'> & {
    /** Seal the context of a run. */
    readonly keys: SealingKeys
  }
  readonly stateDir: string
  readonly imagesDir: string
  readonly owner: string
  readonly links: GuestLinks
  readonly snapshots: Snapshots
  readonly defaults: VmSize
  /** The setting `microvm.image`. */
  readonly image: string
}
