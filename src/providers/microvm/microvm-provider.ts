import { join } from 'node:path'
import type { Blobs, Provider } from '../../ports.ts'
import { createBusyMachines } from '../../runner/busy-machines.ts'
import { type KeepLimits, keepLimits } from '../../runner/keep-limits.ts'
import { sealingKeys } from '../../runner/sealed-context.ts'
import { checkMicrovm } from './check-microvm.ts'
import { destroyMicrovm } from './destroy-microvm.ts'
import { createGuestLinks } from './guest-links.ts'
import { DEFAULT_IMAGE, findImage } from './image-store.ts'
import { detailsOf } from './machine-details.ts'
import { listMachineDirectories } from './machine-directory.ts'
import { openMicrovmSession } from './microvm-session.ts'
import type { ProviderContext } from './provider-context.ts'
import { provisionMicrovm } from './provision-microvm.ts'
import type { VmSize } from './qemu-command.ts'
import { attachToMicrovm, startInMicrovm } from './run-microvm-job.ts'
import { createSnapshots } from './snapshots.ts'
import { fitsMicrovm } from './unmet-microvm-requirement.ts'

export interface MicrovmProviderOptions {
  readonly stateDir: string
  /** Where `deputy microvm setup` puts images. */
  readonly imagesDir: string
  readonly blobs: Blobs
  /** Separates the records of this installation from those of others in a VM. */
  readonly owner?: string
  readonly limit?: number
  readonly keep?: Partial<KeepLimits>
  readonly graceSeconds?: number
  readonly defaults?: Partial<VmSize>
  readonly image?: string
  /** How many VMs are kept booted. */
  readonly warm?: number
  readonly warmAgeSeconds?: number
  log?(message: string, fields: Record<string, unknown>): void
}

const MIB = 1024 * 1024
const DEFAULTS: VmSize = { cpus: 1, memory: 512 * MIB, disk: 1024 * MIB, processes: 512 }

/** Jobs in VMs of QEMU on this computer: each has a kernel of its own. */
export const createMicrovmProvider = (options: MicrovmProviderOptions): Provider => {
  const context = contextOf(options)
  const { stateDir, links, snapshots } = context
  const busy = createBusyMachines()

  return {
    name: 'microvm',
    ownKernel: true,
    get slots() {
      return findImage(context.imagesDir, context.image) === undefined ? 0 : (options.limit ?? 8)
    },
    pool: {
      size: options.warm ?? 0,
      kinds: [context.image],
      ageSeconds: options.warmAgeSeconds ?? 3600,
      kindFor: ({ resources }) => (resources === undefined ? context.image : undefined),
    },
    check: async () => checkMicrovm(context),
    fits: manifest => fitsMicrovm(manifest, context),
    create: request => provisionMicrovm(context, request),

    start: run => busy.start(run, () => startInMicrovm(context, run)),

    attach: async run => {
      if (detailsOf(run.machine).boot === undefined) return { kind: 'unfinished' }
      return busy.attach(run, () => attachToMicrovm(context, run))
    },

    destroy: (machine, signal) => destroyMicrovm(context, machine.id, signal),
    open: async (machine, request, signal) =>
      openMicrovmSession(await links.to(machine.id, signal), request, signal),
    list: async () => listMachineDirectories(stateDir).filter(({ id }) => !snapshots.isMaking(id)),
    close: async () => {
      snapshots.close()
      links.close()
    },
  }
}

const contextOf = (options: MicrovmProviderOptions): ProviderContext => {
  const { stateDir, imagesDir, blobs, owner = 'own', image = DEFAULT_IMAGE, log = () => {} } = options
  const links = createGuestLinks(stateDir)
  return {
    stateDir,
    imagesDir,
    owner,
    image,
    links,
    snapshots: createSnapshots({ stateDir, imagesDir, links, log }),
    defaults: { ...DEFAULTS, ...options.defaults },
    runner: {
      blobs,
      keep: keepLimits(options.keep),
      graceSeconds: options.graceSeconds ?? 5,
      keys: sealingKeys(join(stateDir, 'microvm.key'), undefined),
    },
  }
}
