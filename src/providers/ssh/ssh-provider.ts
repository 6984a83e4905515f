import { join } from 'node:path'
import { createDeadline } from '../../jobs/deadline.ts'
import { AppError } from '../../jobs/errors.ts'
import { type Cluster, createCluster } from '../../nodes/cluster.ts'
import { type ClusterConfigInput, type ClusterNode, parseCluster } from '../../nodes/inventory.ts'
import type { Placement } from '../../nodes/node-chooser.ts'
import type { AttachRequest, Blobs, Machine, Outcome, Provider, Run } from '../../ports.ts'
import { isBusy } from '../../runner/busy-machines.ts'
import { listWorkspaces } from '../../runner/client.ts'
import { type KeepLimits, keepLimits } from '../../runner/keep-limits.ts'
import { driveRun, type RunOptions, runIdOf } from '../../runner/run.ts'
import { openContext, sealingKeys } from '../../runner/sealed-context.ts'
import { clusterReadiness } from './cluster-readiness.ts'
import { type LaunchContext, launch } from './launch-request.ts'
import { createMachineLister } from './list-machines.ts'
import { nodeHost } from './node-host.ts'
import {
  type Place,
  recordedBootId,
  recordedPlace,
  releaseOrReportLeftover,
  UNDELIVERED,
} from './node-placement.ts'
import { openNodeSession } from './node-session.ts'
import { placeInputs } from './place-inputs.ts'
import { createFailures, provision } from './provision-node.ts'
import { reachableMachines } from './reachable-machines.ts'
import { clusterSlots, fitsCluster } from './unmet-node-requirement.ts'
import { createReleaser } from './workspace-releaser.ts'

export interface SshProviderOptions {
  readonly cluster: Cluster
  readonly blobs: Blobs
  readonly keep?: Partial<KeepLimits>
  readonly graceSeconds?: number
  /** Runs routed commands: as the login user, without isolation, restricted by the command policy. */
  readonly routed?: boolean
  /** Seals the context of runs on their nodes; created when missing. */
  readonly keyFile: string
  /** Seals them for all daemons of a fleet instead. */
  readonly fleetKey?: Buffer | undefined
  /** Close the cluster when the provider closes. Leave it out when another provider shares the cluster. */
  readonly ownsCluster?: boolean
}

/** Jobs on the user's own machines. `ssh` keeps them apart where the node can; `node` runs routed commands. */
export const createSshProvider = (options: SshProviderOptions): Provider => {
  const { cluster, blobs, routed = false } = options
  const name = routed ? 'node' : 'ssh'
  const places = new Map<string, Place & Pick<Placement, 'release'>>()
  const busy = new Map<string, Busy>()
  const failures = createFailures()
  const parked = new Set<string>()
  const serialize = createKeyedQueue()
  const release = createReleaser(cluster)
  const context: LaunchContext = {
    cluster,
    blobs,
    keep: keepLimits(options.keep),
    graceSeconds: options.graceSeconds ?? 5,
    routed,
    keys: sealingKeys(options.keyFile, options.fleetKey),
  }

  /** A machine without a recorded node has nothing to clean up: the node is recorded before anything is sent. */
  const placeOf = (machine: Machine): Place | undefined =>
    places.get(machine.id) ?? recordedPlace(cluster, machine)

  const occupy = (machine: Machine, place: Place): void =>
    void places.set(machine.id, { ...place, release: cluster.slots.acquire(place.node.id) })

  const settle = async (run: AttachRequest, work: () => Promise<Outcome>): Promise<Outcome> => {
    const { machine, detach } = run
    const ended = new AbortController()
    busy.set(machine.id, { run, ended: ended.signal })
    try {
      const outcome = await work()
      // Release the slot now, even if the machine is kept or still has to be cleaned up.
      if (outcome.kind !== 'detached') places.get(machine.id)?.release()
      return outcome
    } catch (error) {
      if (detach.aborted) return { kind: 'detached' }
      throw error
    } finally {
      busy.delete(machine.id)
      ended.abort(new Error('the job has ended'))
    }
  }

  return {
    name,
    get slots() {
      // Jobs that wait for one node must not block jobs for other nodes.
      return clusterSlots(cluster) + Math.min(parked.size, MAX_PARKED)
    },
    check: () => clusterReadiness(cluster, name, routed),
    fits: manifest => fitsCluster(cluster, manifest, routed),

    create: async request => {
      const { id, jobId } = request.machine
      // A follow-up job runs where its machine is.
      if (placeOf(request.machine)) return
      const except = failures.of(jobId)
      const park = (): void => void parked.add(id)
      const place = await provision(cluster, request, { except, park }).finally(() => parked.delete(id))
      places.set(id, place)
    },

    start: async run => {
      const { machine } = run
      const other = busy.get(machine.id)
      if (other !== undefined) return { kind: 'not-started', error: isBusy(machine.id, other.run.job.id) }
      return settle(run, () => startOnNode({ context, failures, serialize, placeOf, occupy }, run))
    },

    attach: async run => {
      // The daemon ended before it chose a node: nothing was sent anywhere, and `create` continues.
      if (run.machine.details.node === undefined && run.job.startedAt === null) return { kind: 'unfinished' }
      return settle(run, async () => {
        const place = placeOf(run.machine)
        if (!place) return unknownRun(run, isGone(run.machine.id))
        if (!places.has(run.machine.id)) occupy(run.machine, place)
        return driveRun(driveOptions(context, run, place, performance.now()))
      })
    },

    destroy: async (machine, signal) => {
      const place = placeOf(machine)
      if (place)
        await releaseOrReportLeftover(cluster, machine, place, () => release(place.node, machine, signal))
      places.get(machine.id)?.release()
      places.delete(machine.id)
    },

    list: createMachineLister(cluster),

    reachable: (machines, signal) => reachableMachines(cluster, machines, signal),

    open: async (machine, request, signal) => {
      const [place, current] = [placeOf(machine), busy.get(machine.id)]
      if (!place || !current) throw isGone(machine.id)
      return openNodeSession({
        ...{ cluster, node: place.node, run: current.run, routed, request },
        signal: createDeadline([signal, current.ended]).signal,
      })
    },

    close: async () => {
      if (options.ownsCluster) cluster.close()
    },
  }
}

/** A run on a machine. Sessions in the machine end with it. */
interface Busy {
  readonly run: AttachRequest
  readonly ended: AbortSignal
}

interface Starting {
  readonly context: LaunchContext
  readonly failures: ReturnType<typeof createFailures>
  readonly serialize: ReturnType<typeof createKeyedQueue>
  placeOf(machine: Machine): Place | undefined
  occupy(machine: Machine, place: Place): void
}

const startOnNode = async (
  { context, failures, serialize, placeOf, occupy }: Starting,
  run: Run,
): Promise<Outcome> => {
  const { machine, manifest, job, detach } = run
  const { cluster, blobs } = context
  const begun = performance.now()
  const begunAt = cluster.now()
  let place: Place | undefined
  try {
    place = placeOf(machine)
    if (!place) throw isGone(machine.id)
    const target = await cluster.target(place.node, detach)
    await assertThere(cluster, place.node, machine.id, run)
    if (manifest.machine !== undefined) occupy(machine, place)
    await placeInputs({
      ...{ cluster, target, blobs, manifest, serialize },
      workspaceId: machine.id,
      signal: detach,
    })
    const launched = await launch(context, run, place.node)
    const outcome = await driveRun({ ...driveOptions(context, run, place, begun), ...launched })
    if (outcome.kind === 'not-started') failures.add(job.id, place.node.id)
    else failures.forget(job.id)
    return outcome
  } catch (error) {
    if (detach.aborted) return { kind: 'detached' }
    if (!(error instanceof AppError)) throw error
    if (place && error.retryable) {
      failures.add(job.id, place.node.id)
      cluster.failed(place.node, error, undefined, begunAt)
    }
    return { kind: 'not-started', error }
  }
}

const driveOptions = (
  context: LaunchContext,
  run: AttachRequest,
  place: Place,
  begun: number,
): RunOptions => {
  const { node } = place
  const { cluster } = context
  const bootId = recordedBootId(run.machine)
  return {
    ...context,
    host: nodeHost(cluster, node),
    run,
    context: sealed => openContext(sealed, context.keys),
    bootId,
    begun,
    executedOn: { node: node.id, because: place.reason },
    // A slot taken before the first connection was recorded without the boot id.
    onStarted: () => {
      const now = cluster.ssh.bootId(node.id)
      // A boot id that cannot be stored only delays the verdict on a rebooted node.
      return now === undefined || now === bootId
        ? undefined
        : run.remember({ boot: now }).catch(() => undefined)
    },
    // Clean-up then prevents the run from starting late on the node.
    onUndelivered: () => run.remember({ [UNDELIVERED]: runIdOf(run) }).catch(() => undefined),
    remote: true,
    takenOver: () => isFollowedElsewhere(node),
  }
}

/** Creates the provider and its cluster from plain configuration. */
export const openSshProvider = (
  options: Omit<SshProviderOptions, 'cluster' | 'keyFile'> & {
    stateDir: string
    cluster: ClusterConfigInput
    owner?: string
  },
): Provider =>
  createSshProvider({
    ...options,
    keyFile: join(options.stateDir, 'memo.key'),
    ownsCluster: true,
    cluster: createCluster({
      config: parseCluster(options.cluster),
      owner: options.owner ?? 'own',
      stateDirectory: options.stateDir,
      runtimeDirectory: join(options.stateDir, 'c'),
    }),
  })

/** Bounds the number of waiting jobs held in memory; the rest stays in the queue. */
const MAX_PARKED = 1_000

/** A follow-up job needs the existing workspace. */
const assertThere = async (cluster: Cluster, node: ClusterNode, id: string, run: Run): Promise<void> => {
  if (run.manifest.machine === undefined) return
  const channel = await nodeHost(cluster, node).connect(run.detach)
  const workspaces = await listWorkspaces(channel, run.detach)
  if (!workspaces.some(workspace => workspace.id === id)) throw isGone(id)
}

const unknownRun = (run: AttachRequest, error: AppError): Outcome => ({
  kind: run.job.startedAt === null ? 'not-started' : 'lost',
  error,
})

const isGone = (id: string): AppError =>
  new AppError('not_found', `Machine ${id} and its workspace no longer exist on any node.`, {
    hint: 'Submit the job without machine.',
  })

const isFollowedElsewhere = (node: ClusterNode): AppError =>
  new AppError('conflict', `Another daemon has taken over the command on node ${node.id}.`, {
    hint: 'If the home directory of Deputy was copied from another computer, delete cluster/owner in it and restart the daemon.',
    retryable: false,
  })

/** Runs tasks with the same key one after another. */
const createKeyedQueue = (): (<T>(key: string, work: () => Promise<T>) => Promise<T>) => {
  const tails = new Map<string, Promise<unknown>>()
  return (key, work) => {
    const next = (tails.get(key) ?? Promise.resolve()).then(work, work)
    // The caller of `work` gets its error.
    const tail = next.catch(() => undefined).finally(() => tails.get(key) === tail && tails.delete(key))
    tails.set(key, tail)
    return next
  }
}
