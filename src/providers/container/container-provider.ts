import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Manifest } from '../../jobs/manifest.ts'
import type { Blobs, Provider } from '../../ports.ts'
import { createBusyMachines } from '../../runner/busy-machines.ts'
import { type KeepLimits, keepLimits } from '../../runner/keep-limits.ts'
import { sealingKeys } from '../../runner/sealed-context.ts'
import { checkContainer } from './check-container.ts'
import { createEngines, type EngineSources } from './container-engine.ts'
import { openContainerSession } from './container-session.ts'
import { type ContainerDefaults, containerName, hasOwnKernel } from './container-spec.ts'
import { destroyContainer } from './destroy-container.ts'
import { listMachines, reachableMachines } from './list-machines.ts'
import { detailsOf } from './machine-details.ts'
import { clientOf, type ProviderContext } from './provider-context.ts'
import { provisionContainer } from './provision-container.ts'
import { attachToContainer, startInContainer } from './run-container-job.ts'
import { fitsContainer } from './unmet-container-requirement.ts'

export interface ContainerProviderOptions extends Partial<EngineSources> {
  readonly stateDir: string
  readonly blobs: Blobs
  /** Separates the containers of this installation from those of others on the same engine. */
  readonly owner?: string
  /** Seals the context of runs for all daemons of a fleet. */
  readonly fleetKey?: Buffer | undefined
  readonly limit?: number
  readonly keep?: Partial<KeepLimits>
  readonly graceSeconds?: number
  readonly defaults?: Partial<ContainerDefaults>
  /** For jobs that name no image. */
  readonly image?: string | undefined
  readonly allow?: readonly string[]
  readonly users?: Readonly<Record<string, string>>
  readonly runtimeClass?: string | undefined
  /** Images to keep containers started for. */
  readonly warm?: readonly string[]
  readonly warmAgeSeconds?: number
}

const DEFAULTS: ContainerDefaults = { cpu: 2, memory: 2 * 1024 ** 3, disk: 1024 ** 3, processes: 512 }

/** Jobs in containers of Docker or Podman, of any image with a shell. */
export const createContainerProvider = (options: ContainerProviderOptions): Provider => {
  const { warm = [] } = options
  const context = contextOf(options)
  const { engines, owner, image, allow } = context
  const busy = createBusyMachines()

  return {
    name: 'container',
    ownKernel: hasOwnKernel(options.runtimeClass),
    get slots() {
      return process.platform === 'linux' && !engines.isConfigured() ? 0 : (options.limit ?? 16)
    },
    pool: {
      size: warm.length > 0 ? 1 : 0,
      kinds: warm,
      ageSeconds: options.warmAgeSeconds ?? 3600,
      kindFor: manifest => {
        const wanted = manifest.image ?? image
        return wanted !== undefined && warm.includes(wanted) && isPlain(manifest) ? wanted : undefined
      },
    },
    check: signal => checkContainer(engines, { ...context, signal }),
    fits: manifest => fitsContainer(manifest, { image, allow, isConfigured: engines.isConfigured }),

    create: request => provisionContainer(context, request),

    start: run => busy.start(run, () => startInContainer(context, run)),

    attach: async run => {
      if (detailsOf(run.machine).boot === undefined) return { kind: 'unfinished' }
      return busy.attach(run, () => attachToContainer(context, run))
    },

    destroy: async (machine, signal) => {
      // Recorded before it is created: without an engine on record there is nothing.
      if (detailsOf(machine).engine === undefined && !engines.isConfigured()) return
      await destroyContainer(clientOf(context, machine), { machineId: machine.id, owner, signal })
    },

    open: (machine, request, signal) =>
      openContainerSession(clientOf(context, machine), containerName(machine.id), request, signal),

    list: (signal, known = []) => listMachines(context, known, signal),

    reachable: (machines, signal) => reachableMachines(context, machines, signal),

    close: async () => undefined,
  }
}

const contextOf = (options: ContainerProviderOptions): ProviderContext => {
  const { blobs, owner = 'own', image, allow = ['*'], users = {}, runtimeClass } = options
  const env = options.env ?? process.env
  const home = options.home ?? homedir()
  return {
    engines: createEngines({ host: options.host, env, home }),
    defaults: { ...DEFAULTS, ...options.defaults },
    runner: {
      blobs,
      keep: keepLimits(options.keep),
      graceSeconds: options.graceSeconds ?? 5,
      keys: sealingKeys(join(options.stateDir, 'container.key'), options.fleetKey),
    },
    ...{ owner, env, home, image, allow, users, runtimeClass },
  }
}

/** Whether a container that was created ahead serves the job. */
const isPlain = ({ resources, network, platform, gpus, pull }: Manifest): boolean =>
  [resources, platform, gpus].every(one => one === undefined) && pull !== 'always' && network !== 'full'
