import { join } from 'node:path'
import { toAppError } from '../jobs/errors.ts'
import { type AddressBook, type AddressBookOptions, createAddressBook } from './addresses/book.ts'
import { findSelf, type Self, type SelfOptions } from './addresses/self.ts'
import { systemSources } from './addresses/sources.ts'
import { createBreakers } from './breaker.ts'
import { type Chooser, createChooser } from './choose.ts'
import { parseDestination } from './hosts.ts'
import { type ClusterConfig, type ClusterNode, findNode } from './inventory.ts'
import { changeOf, type InventoryChange } from './inventory-change.ts'
import { askNode } from './probe/ask.ts'
import { createMonitor, type Monitor, type NodeStatus } from './probe/monitor.ts'
import type { ProbeReport } from './probe/report.ts'
import { createSeats, type Seats } from './seats.ts'
import type { SshTarget } from './ssh/arguments.ts'
import { sshFailureOf } from './ssh/errors.ts'
import { createSsh, type Ssh } from './ssh/session.ts'
import { createTargets } from './targets.ts'

export interface ClusterOptions {
  config: ClusterConfig
  /** Names what is ours on the nodes; another daemon has another. */
  owner: string
  /** For known_hosts. */
  stateDirectory: string
  /** For sockets; short. */
  runtimeDirectory: string
  env?: NodeJS.ProcessEnv
  addresses?: Partial<AddressBookOptions>
  self?: Pick<SelfOptions, 'hostName' | 'addresses'>
  now?: () => number
}

/** The user's nodes: where they are, how they fare, which one to take, and what runs on them. */
export interface Cluster extends Chooser, Seats {
  readonly config: ClusterConfig
  readonly owner: string
  readonly nodes: readonly ClusterNode[]
  readonly ssh: Ssh
  find(name: string): ClusterNode
  /** Which of the nodes this computer is, and its address, as far as is known. */
  readonly self: Self
  /** Where a node is right now, as ssh wants to know it. */
  target(node: ClusterNode, signal: AbortSignal): Promise<SshTarget>
  /** What is known of a node, without waiting. */
  peek(node: ClusterNode): NodeStatus | undefined
  /** Of every node but this computer, which is known without ssh; with `everyone` of that as well. */
  status(options?: { force?: boolean; everyone?: boolean }): Promise<NodeStatus[]>
  probe(node: ClusterNode, signal: AbortSignal): Promise<{ report: ProbeReport; latencyMs: number }>
  now(): number
  succeeded(node: ClusterNode, target?: SshTarget): void
  /** `begun`: when what failed was begun; all that one cut ends counts once. */
  failed(node: ClusterNode, error: unknown, target?: SshTarget, begun?: number): void
  /** Takes another configuration. What runs goes on, on nodes that are gone from it too. */
  update(config: ClusterConfig): InventoryChange
  close(): void
}

const PROBE_LIMIT = 32

export const createCluster = (options: ClusterOptions): Cluster => {
  const { now = Date.now } = options
  const env = options.env ?? process.env
  let config = options.config
  const ssh = createSsh({
    settings: {
      get knownHosts() {
        return config.ssh.knownHosts ?? join(options.stateDirectory, 'known_hosts')
      },
      get hostKeys() {
        return config.ssh.hostKeys
      },
      get configFile() {
        return config.ssh.configFile
      },
      get connectTimeoutSeconds() {
        return config.ssh.connectTimeout
      },
      get answerTimeoutSeconds() {
        return config.ssh.timeout
      },
    },
    controlDirectory: options.runtimeDirectory,
    env,
  })
  const openAddresses = (): AddressBook =>
    createAddressBook({
      ttlMs: config.addresses.ttl * 1000,
      allow: config.addresses.allow,
      sources: systemSources(config.addresses.dns),
      now,
      ...options.addresses,
    })
  let addresses = openAddresses()
  const breakers = createBreakers({ now })
  let targets = createTargets(config, addresses, env)
  const seats = createSeats()
  const closing = new AbortController()
  let self: Self = { address: undefined, id: undefined }
  const findOurselves = async (): Promise<void> => {
    const { gateway, dns } = config.addresses
    const towards = gateway ?? (dns === undefined ? undefined : parseDestination(dns)?.host)
    self = await findSelf({ nodes: config.nodes, towards, signal: closing.signal, ...options.self })
  }
  let found = findOurselves()

  const probe: Cluster['probe'] = async (node, signal) => {
    const target = await targets(node, signal)
    try {
      const answer = await askNode(ssh, target, signal)
      breakers.answered(node.id)
      if (target.address !== undefined) addresses.verified(node.host, target.address)
      return answer
    } catch (error) {
      blame(node, error, target)
      throw error
    }
  }

  const monitor: Monitor = createMonitor({
    probe,
    get thresholds() {
      return config.thresholds
    },
    get timeoutMs() {
      return config.timeouts.status * 1000
    },
    parallel: PROBE_LIMIT,
    now,
  })

  /** Only what speaks of the place, not of the login, makes us look elsewhere. */
  const blame = (node: ClusterNode, error: unknown, target: SshTarget | undefined): void => {
    const failure = sshFailureOf(error)
    if (failure !== 'unreachable' && failure !== 'timed-out') return
    if (target?.address !== undefined) addresses.failed(node.host, target.address)
    ssh.reset(node.id)
  }

  const chooser = createChooser({
    ...{ monitor, breakers, seats, now },
    nodes: () => config.nodes,
    self: () => self.id,
  })

  const update: Cluster['update'] = next => {
    const change = changeOf(config.nodes, next.nodes)
    const moved = JSON.stringify(config.addresses) !== JSON.stringify(next.addresses)
    config = next
    if (moved) addresses = openAddresses()
    targets = createTargets(config, addresses, env)
    found = findOurselves()
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
    status: async lookOptions => {
      await found
      const all = lookOptions?.everyone ? config.nodes : config.nodes.filter(node => node.id !== self.id)
      return monitor.look(all, lookOptions)
    },
    probe,
    ...chooser,
    ...seats,
    now,
    succeeded: (node, target) => {
      breakers.succeeded(node.id)
      if (target?.address !== undefined) addresses.verified(node.host, target.address)
    },
    failed: (node, error, target, begun) => {
      const cause = toAppError(error)
      breakers.failed(node.id, cause.message, {
        cause: sshFailureOf(error) === undefined ? 'node' : 'connection',
        ...(begun !== undefined && { begun }),
      })
      blame(node, error, target)
      if (sshFailureOf(error) !== undefined) monitor.unreachable(node, cause)
    },
    update,
    close: () => {
      closing.abort(new Error('the cluster is closed'))
      monitor.close()
      ssh.close()
    },
  }
}
