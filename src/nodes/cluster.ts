import { join } from 'node:path'
import { toAppError } from '../jobs/errors.ts'
import {
  type AddressResolver,
  type AddressResolverOptions,
  createAddressResolver,
} from './addresses/address-resolver.ts'
import { findSelf, type Self, type SelfOptions } from './addresses/find-self.ts'
import { systemNameServices } from './addresses/name-services.ts'
import { createCircuitBreakers } from './circuit-breaker.ts'
import { createContactRecords } from './contact-records.ts'
import { type ClusterConfig, type ClusterNode, findNode } from './inventory.ts'
import { diffInventory, type InventoryDiff } from './inventory-diff.ts'
import { createNodeChooser, type NodeChooser } from './node-chooser.ts'
import { createNodeMonitor, type NodeStatus } from './probe/node-monitor.ts'
import { probeNode } from './probe/probe-node.ts'
import type { ProbeReport } from './probe/probe-report.ts'
import { createSlots, type Slots } from './slots.ts'
import type { SshSettings, SshTarget } from './ssh/ssh-arguments.ts'
import { sshFailureOf } from './ssh/ssh-errors.ts'
import { createSsh, type Ssh } from './ssh/ssh-session.ts'
import { parseDestination } from './ssh-destination.ts'
import { createTargetResolver } from './target-resolver.ts'

export interface ClusterOptions {
  config: ClusterConfig
  /** The installation id; it separates our files on a node from those of other installations. */
  owner: string
  /** Holds known_hosts. */
  stateDirectory: string
  /** Holds control sockets; must be short, because a socket path has about 100 characters. */
  runtimeDirectory: string
  env?: NodeJS.ProcessEnv
  addresses?: Partial<AddressResolverOptions>
  self?: Pick<SelfOptions, 'hostName' | 'addresses'>
  now?: () => number
}

/** The user's nodes: their addresses, health and slots, and the choice of a node for a command. */
export interface Cluster extends NodeChooser {
  readonly config: ClusterConfig
  readonly owner: string
  readonly nodes: readonly ClusterNode[]
  readonly ssh: Ssh
  readonly slots: Slots
  find(name: string): ClusterNode
  /** This computer: its address, and its node id when it is in the inventory. */
  readonly self: Self
  /** Resolves the current address of a node. */
  target(node: ClusterNode, signal: AbortSignal): Promise<SshTarget>
  /** The last known status of a node, without waiting. */
  peek(node: ClusterNode): NodeStatus | undefined
  /** Probes every node. Includes this computer only with `everyone`: its status is available without ssh. */
  status(options?: { force?: boolean; everyone?: boolean }): Promise<NodeStatus[]>
  probe(node: ClusterNode, signal: AbortSignal): Promise<{ report: ProbeReport; latencyMs: number }>
  now(): number
  succeeded(node: ClusterNode, target?: SshTarget): void
  /** `startedAt` is when the failed command started: commands that one lost connection ends count as one failure. */
  failed(node: ClusterNode, error: unknown, target?: SshTarget, startedAt?: number): void
  /** Applies a new configuration. Running commands finish, also on nodes that it no longer lists. */
  update(config: ClusterConfig): InventoryDiff
  close(): void
}

const PROBE_LIMIT = 32

export const createCluster = (options: ClusterOptions): Cluster => {
  const { now = Date.now } = options
  const env = options.env ?? process.env
  let config = options.config
  const ssh = createSsh({
    settings: liveSshSettings(() => config.ssh, join(options.stateDirectory, 'known_hosts')),
    controlDirectory: options.runtimeDirectory,
    env,
  })
  let addresses = createAddresses(config, options)
  const breakers = createCircuitBreakers({ now })
  let targets = createTargetResolver(config, addresses, env)
  const slots = createSlots()
  const closing = new AbortController()
  let self: Self = { address: undefined, id: undefined }
  const updateSelf = async (): Promise<void> => {
    self = await findSelf({ ...ownNetwork(config), signal: closing.signal, ...options.self })
  }
  let selfKnown = updateSelf()

  const contacts = createContactRecords({ ssh, breakers, addresses: () => addresses })

  const probe: Cluster['probe'] = async (node, signal) => {
    const target = await targets(node, signal)
    try {
      const answer = await probeNode(ssh, target, signal)
      contacts.reached(node, target)
      return answer
    } catch (error) {
      contacts.notReached(node, error, target)
      throw error
    }
  }

  const monitor = createNodeMonitor(
    Object.assign(
      liveProbeSettings(() => config),
      { probe, parallel: PROBE_LIMIT, now },
    ),
  )

  const chooser = createNodeChooser({
    ...{ monitor, breakers, slots, now },
    nodes: () => config.nodes,
    self: () => self.id,
  })

  const update: Cluster['update'] = next => {
    const change = diffInventory(config.nodes, next.nodes)
    const addressesChanged = JSON.stringify(config.addresses) !== JSON.stringify(next.addresses)
    config = next
    if (addressesChanged) addresses = createAddresses(config, options)
    targets = createTargetResolver(config, addresses, env)
    selfKnown = updateSelf()
    for (const id of [...change.removed, ...change.changed]) {
      breakers.forget(id)
      monitor.forget(id)
    }
    return change
  }

  return {
    get config() {
      return config
    },
    owner: options.owner,
    get nodes() {
      return config.nodes
    },
    ssh,
    find: name => findNode(config.nodes, name),
    target: (node, signal) => targets(node, signal),
    peek: node => monitor.peek(node),
    get self() {
      return self
    },
    status: async checkOptions => {
      await selfKnown
      const all = checkOptions?.everyone ? config.nodes : config.nodes.filter(node => node.id !== self.id)
      return monitor.check(all, checkOptions)
    },
    probe,
    ...chooser,
    slots,
    now,
    succeeded: contacts.succeeded,
    failed: (node, error, target, startedAt) => {
      contacts.failed(node, error, target, startedAt)
      if (sshFailureOf(error) !== undefined) monitor.markUnreachable(node, toAppError(error))
    },
    update,
    close: () => {
      closing.abort(new Error('the cluster is closed'))
      monitor.close()
      ssh.close()
    },
  }
}

const createAddresses = (
  config: ClusterConfig,
  { now = Date.now, addresses }: ClusterOptions,
): AddressResolver =>
  createAddressResolver({
    ttlMs: config.addresses.ttl * 1000,
    allow: config.addresses.allow,
    nameServices: systemNameServices(config.addresses.dns),
    now,
    ...addresses,
  })

/** The settings of ssh as the configuration has them at the moment of use. */
const liveSshSettings = (read: () => ClusterConfig['ssh'], knownHosts: string): SshSettings => ({
  get knownHosts() {
    return read().knownHosts ?? knownHosts
  },
  get hostKeys() {
    return read().hostKeys
  },
  get configFile() {
    return read().configFile
  },
  get connectTimeoutSeconds() {
    return read().connectTimeout
  },
  get answerTimeoutSeconds() {
    return read().timeout
  },
})

/** Reads the thresholds and timeouts of probes at each use, so that a reload applies immediately. */
const liveProbeSettings = (read: () => ClusterConfig) => ({
  get thresholds() {
    return read().thresholds
  },
  get timeoutMs() {
    return read().timeouts.status * 1000
  },
})

/** The nodes, and an address in their network: this computer's address in it is the one of the route towards it. */
const ownNetwork = ({ nodes, addresses: { gateway, dns } }: ClusterConfig) => ({
  nodes,
  towards: gateway ?? (dns === undefined ? undefined : parseDestination(dns)?.host),
})
