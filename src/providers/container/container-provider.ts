import { homedir } from 'node:os'
import { join } from 'node:path'
import { AppError } from '../../jobs/errors.ts'
import type { Manifest } from '../../jobs/manifest.ts'
import { formatSize, parseSize } from '../../jobs/sizes.ts'
import type { AttachRequest, Blobs, FoundMachine, Machine, Outcome, Provider } from '../../ports.ts'
import { type KeepLimits, keepLimits } from '../../runner/keep-limits.ts'
import { driveRun, type RunOptions } from '../../runner/run.ts'
import { contextKey } from '../../runner/sealed-context.ts'
import { checkContainer } from './check-container.ts'
import { createEngines, type EngineSources } from './container-engine.ts'
import { containerHost, inspectContainer } from './container-host.ts'
import {
  type ContainerDefaults,
  containerName,
  isolationOf,
  MACHINE_LABEL,
  OWNER_LABEL,
  type SpecRequest,
} from './container-spec.ts'
import { createContainer } from './create-container.ts'
import { destroyContainer } from './destroy-container.ts'
import { field, text } from './engine-address.ts'
import type { EngineClient } from './engine-client.ts'
import { launchRequest } from './launch-request.ts'
import { detailsOf } from './machine-details.ts'
import { wasOutOfMemory } from './out-of-memory.ts'
import { placeInputs } from './place-inputs.ts'
import { ensureImage } from './pull-image.ts'
import { registryAuth } from './registry-credentials.ts'
import { assertImageAllowed, fitsContainer } from './unmet-container-requirement.ts'

export interface ContainerProviderOptions extends Partial<EngineSources> {
  readonly stateDir: string
  readonly blobs: Blobs
  /** Separates the containers of this installation from those of others on the same engine. */
  readonly owner?: string
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
  const { blobs, owner = 'own', image: defaultImage, allow = ['*'], warm = [] } = options
  const env = options.env ?? process.env
  const home = options.home ?? homedir()
  const engines = createEngines({ host: options.host, env, home })
  const defaults = { ...DEFAULTS, ...options.defaults }
  const common = {
    blobs,
    keep: keepLimits(options.keep),
    graceSeconds: options.graceSeconds ?? 5,
    key: contextKey(join(options.stateDir, 'container.key')),
  }
  const busy = new Map<string, string>()

  const clientOf = (machine: Machine): EngineClient => {
    const { engine } = detailsOf(machine)
    return engine === undefined ? engines.current() : engines.at(engine)
  }

  const specOf = (machine: Machine, image: SpecRequest['image'], manifest?: Manifest): SpecRequest => ({
    machineId: machine.id,
    owner,
    image,
    users: options.users ?? {},
    runtimeClass: options.runtimeClass,
    defaults,
    manifest,
    network: manifest?.network === 'full' ? 'default' : 'none',
  })

  const drive = (run: AttachRequest): RunOptions => {
    const { machine } = run
    const { image, boot, engineLabel } = detailsOf(machine)
    return {
      ...common,
      run,
      host: containerHost({
        client: clientOf(machine),
        name: containerName(machine.id),
        machineId: machine.id,
        owner,
        image: image?.name ?? '',
      }),
      bootId: boot,
      begun: performance.now(),
      executedOn: { node: engineLabel ?? 'container', because: `it has the image ${image?.name ?? ''}` },
      ...(image && { image: { name: image.name, digest: image.digest ?? image.id } }),
      // The runner in the container holds the command through any outage of the engine's socket.
      remote: true,
      takenOver: () => isFollowedElsewhere(machine.id),
    }
  }

  /** Adds the memory limit to a failed job that hit it. */
  const withLimits = async (run: AttachRequest, outcome: Outcome): Promise<Outcome> => {
    if (outcome.kind !== 'exit' || outcome.exit.code === 0 || outcome.exit.stopped !== null) return outcome
    if (!(await wasOutOfMemory(clientOf(run.machine), containerName(run.machine.id)))) return outcome
    const memory = run.manifest.resources?.memory
    const limit = formatSize(memory === undefined ? defaults.memory : parseSize(memory))
    const limitsHit = [...outcome.exit.limitsHit, `memory: it used more than ${limit}`]
    return { kind: 'exit', exit: { ...outcome.exit, limitsHit } }
  }

  const settle = async (run: AttachRequest, work: () => Promise<Outcome>): Promise<Outcome> => {
    busy.set(run.machine.id, run.job.id)
    try {
      return await withLimits(run, await work())
    } catch (error) {
      if (run.detach.aborted) return { kind: 'detached' }
      if (!(error instanceof AppError)) throw error
      return { kind: 'not-started', error }
    } finally {
      busy.delete(run.machine.id)
    }
  }

  const mayExist = (machine: Machine, signal: AbortSignal): Promise<boolean> =>
    inspectContainer(clientOf(machine), containerName(machine.id), signal).then(
      state => state !== undefined,
      () => true,
    )

  return {
    name: 'container',
    get slots() {
      return process.platform === 'linux' && !engines.isConfigured() ? 0 : (options.limit ?? 16)
    },
    pool: {
      size: warm.length > 0 ? 1 : 0,
      kinds: warm,
      ageSeconds: options.warmAgeSeconds ?? 3600,
      kindFor: manifest => {
        const { image = defaultImage, resources, network, platform, gpus, pull } = manifest
        const isPlain = [resources, platform, gpus].every(one => one === undefined) && pull !== 'always'
        return isPlain && (network ?? 'none') === 'none' && image && warm.includes(image) ? image : undefined
      },
    },
    check: signal => checkContainer(engines, { env, home, image: defaultImage, signal }),
    fits: manifest =>
      fitsContainer(manifest, { image: defaultImage, allow, isConfigured: engines.isConfigured }),

    create: async request => {
      const { machine, manifest, kind, signal, remember } = request
      const name = containerName(machine.id)
      if (detailsOf(machine).boot !== undefined) {
        const state = await inspectContainer(clientOf(machine), name, signal)
        if (state?.running || manifest?.machine !== undefined) return
        await destroyContainer(clientOf(machine), { machineId: machine.id, owner, signal })
      }
      const wanted = kind || (manifest?.image ?? defaultImage)
      if (wanted === undefined)
        throw new AppError('invalid', 'The job names no image.', { hint: 'Use --image.' })
      assertImageAllowed(wanted, allow)
      const client = engines.current()
      await remember({ engine: client.address.url, container: name })
      const engineLabel = await engines.label(client, signal)
      if (manifest?.gpus !== undefined && engineLabel.startsWith('podman')) throw noGpus(engineLabel)
      const begun = performance.now()
      const image = await ensureImage(client, {
        image: wanted,
        pull: manifest?.pull ?? 'missing',
        platform: manifest?.platform,
        auth: registry => registryAuth(registry, { env, home }),
        ...(request.waiting && { waiting: request.waiting }),
        signal,
      })
      const pulled = performance.now()
      const spec = specOf(machine, image, manifest)
      const { startedAt } = await createContainer(client, spec, signal)
      request.timed?.({
        image: Math.round(pulled - begun),
        create: Math.round(performance.now() - pulled),
      })
      const isolation = isolationOf(spec, engineLabel)
      await remember({ image, engineLabel, isolation, boot: startedAt })
    },

    start: async run => {
      const other = busy.get(run.machine.id)
      if (other !== undefined) return { kind: 'not-started', error: isBusy(run.machine.id, other) }
      return settle(run, async () => {
        const { machine, manifest } = run
        const { image, isolation } = detailsOf(machine)
        const client = clientOf(machine)
        const name = containerName(machine.id)
        if (image === undefined || (await inspectContainer(client, name, run.detach)) === undefined)
          throw isGone(machine.id)
        await placeInputs({ client, container: name, blobs, manifest, signal: run.detach })
        return driveRun({ ...drive(run), launch: launchRequest({ ...common, run, isolation }) })
      })
    },

    attach: async run => {
      if (detailsOf(run.machine).boot === undefined) return { kind: 'unfinished' }
      return settle(run, () => driveRun(drive(run)))
    },

    destroy: async (machine, signal) => {
      // Recorded before it is created: without an engine on record there is nothing.
      if (detailsOf(machine).engine === undefined && !engines.isConfigured()) return
      await destroyContainer(clientOf(machine), { machineId: machine.id, owner, signal })
    },

    list: async (signal, known = []) => {
      const current = engines.isConfigured() ? engines.current() : undefined
      const found = current && (await listContainers(current, owner, signal).catch(() => undefined))
      // The containers of an engine can be listed only while it is configured and answers.
      const isSeen = (machine: Machine): boolean =>
        found !== undefined && detailsOf(machine).engine === current?.address.url
      const unseen = known.filter(machine => !isSeen(machine))
      const states = await Promise.all(unseen.map(machine => mayExist(machine, signal)))
      signal.throwIfAborted()
      return [
        ...(found ?? []),
        ...unseen.filter((_, index) => states[index]).map(({ id, details }) => ({ id, details })),
      ]
    },

    close: async () => undefined,
  }
}

const listContainers = async (
  client: EngineClient,
  owner: string,
  signal: AbortSignal,
): Promise<FoundMachine[]> => {
  const filters = JSON.stringify({ label: [`${OWNER_LABEL}=${owner}`] })
  const found = await client.json({ path: '/containers/json', query: { all: '1', filters }, signal })
  return (Array.isArray(found) ? found : []).flatMap(one => foundMachine(one, client.address.url))
}

const foundMachine = (found: unknown, engine: string): FoundMachine[] => {
  const id = text(field(found, 'Labels'), MACHINE_LABEL)
  if (id === undefined) return []
  const created = field(found, 'Created')
  return [
    {
      id,
      details: { engine, container: containerName(id) },
      ...(typeof created === 'number' && { createdAt: created * 1000 }),
    },
  ]
}

/** Podman takes the request of Docker for GPUs, and gives none. */
const noGpus = (engine: string): AppError =>
  new AppError('unsupported', `GPUs need Docker; the engine is ${engine}.`, {
    hint: 'Set container.host to the socket of Docker, or leave gpus out.',
  })

const isGone = (id: string): AppError =>
  new AppError('not_found', `The container of machine ${id} no longer exists.`, {
    hint: 'Submit the job without machine.',
  })

const isBusy = (id: string, jobId: string): AppError =>
  new AppError('conflict', `The machine ${id} runs job ${jobId}.`, {
    hint: `A machine runs one command at a time. Wait for its end: deputy status ${jobId}`,
  })

const isFollowedElsewhere = (id: string): AppError =>
  new AppError('conflict', `Another daemon has taken over the command in machine ${id}.`, {
    hint: 'Two daemons use the same home directory on this engine: deputy daemon status',
    retryable: false,
  })
