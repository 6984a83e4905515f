import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { abortable } from '../jobs/deadline.ts'
import { toAppError } from '../jobs/errors.ts'
import { type AddressBook, type AddressBookOptions, createAddressBook } from './addresses/book.ts'
import { findSelf, type Self, type SelfOptions } from './addresses/self.ts'
import { systemSources } from './addresses/sources.ts'
import { type Breakers, createBreakers } from './breaker.ts'
import { parseDestination } from './hosts.ts'
import { type ClusterConfig, type ClusterNode, findNode } from './inventory.ts'
import { askNode } from './probe/ask.ts'
import { createMonitor, type Monitor, type NodeStatus } from './probe/monitor.ts'
import type { ProbeReport } from './probe/report.ts'
import { standbyFor } from './remote/request.ts'
import { createShim, type RemoteShim } from './remote/shim.ts'
import type { Requirements } from './requirements.ts'
import { type Candidate, type Choice, route } from './router.ts'
import type { SshTarget } from './ssh/arguments.ts'
import { sshFailureOf } from './ssh/errors.ts'
import { createSsh, type Ssh } from './ssh/session.ts'
import { createTargets } from './targets.ts'
import { topicName } from './topics.ts'

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
export interface Cluster {
  readonly config: ClusterConfig
  readonly owner: string
  readonly nodes: readonly ClusterNode[]
  readonly ssh: Ssh
  readonly shim: RemoteShim
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
  /** Picks a node and takes a place on it. */
  choose(request: ChooseRequest, signal: AbortSignal): Promise<Placement>
  /** The same at once; undefined where nodes would have to be asked first. */
  chooseNow(request: ChooseRequest): Placement | undefined
  /** Takes a place on a given node, for a command that is there already. */
  occupy(id: string): () => void
  running(id: string): number
  /** Resolves when a place has become free somewhere, or after a while: what closes a node passes. */
  freed(signal: AbortSignal): Promise<void>
  now(): number
  succeeded(node: ClusterNode, target?: SshTarget): void
  /** `begun`: when what failed was begun; all that one cut ends counts once. */
  failed(node: ClusterNode, error: unknown, target?: SshTarget, begun?: number): void
  /** Takes another configuration. What runs goes on, on nodes that are gone from it too. */
  update(config: ClusterConfig): InventoryChange
  close(): void
}

export interface InventoryChange {
  added: string[]
  removed: string[]
  changed: string[]
}

export interface ChooseRequest {
  requires?: Requirements
  /** This node and no other. */
  node?: string | undefined
  topics?: readonly string[]
  /** Nodes that have just failed. */
  except?: ReadonlySet<string>
}

export interface Placement extends Choice {
  node: ClusterNode
  release(): void
}

const PROBE_LIMIT = 32
const FREED_MS = 1_000

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
    standby: standbyFor(options.owner),
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
  const running = new Map<string, number>()
  const waiting = new Set<() => void>()
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

  const occupy = (id: string): (() => void) => {
    running.set(id, (running.get(id) ?? 0) + 1)
    let released = false
    return () => {
      if (released) return
      released = true
      running.set(id, Math.max(0, (running.get(id) ?? 1) - 1))
      for (const wake of [...waiting]) wake()
    }
  }

  const poolFor = ({ node }: ChooseRequest): readonly ClusterNode[] =>
    node === undefined ? config.nodes : [findNode(config.nodes, node)]

  const pick = (request: ChooseRequest): Placement => {
    const candidates = poolFor(request).map(node =>
      candidateOf(node, { monitor, breakers, running, except: request.except, self: self.id }),
    )
    const choice = route(candidates, {
      now: now(),
      ...(request.requires && { requires: request.requires }),
      ...(request.topics && { topics: request.topics }),
    })
    const node = findNode(config.nodes, choice.id)
    breakers.enter(node.id)
    const trying = breakers.isTrying(node.id)
    const free = occupy(node.id)
    const release = (): void => {
      if (trying) breakers.leave(node.id)
      free()
    }
    const reason = request.node === undefined ? choice.reason : `${node.id} was asked for by name.`
    return { ...choice, reason, node, release }
  }

  const choose: Cluster['choose'] = async (request, signal) => {
    const unknown = unknownThatMatter(poolFor(request), monitor, request)
    if (unknown.length > 0) await monitor.look(unknown)
    signal.throwIfAborted()
    return pick(request)
  }

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
    shim: createShim(ssh, options.owner),
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
    choose,
    chooseNow: request =>
      unknownThatMatter(poolFor(request), monitor, request).length > 0 ? undefined : pick(request),
    occupy,
    running: id => running.get(id) ?? 0,
    freed: signal => {
      let wake = (): void => undefined
      const free = new Promise<void>(resolve => {
        wake = resolve
      })
      waiting.add(wake)
      const pause = sleep(FREED_MS, undefined, { ref: false })
      return abortable(Promise.race([free, pause]), signal).finally(() => waiting.delete(wake))
    },
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

const changeOf = (before: readonly ClusterNode[], after: readonly ClusterNode[]): InventoryChange => {
  const old = new Map(before.map(node => [node.id, JSON.stringify(node)]))
  const kept = after.filter(node => old.has(node.id))
  return {
    added: after.filter(node => !old.has(node.id)).map(node => node.id),
    removed: [...old.keys()].filter(id => !kept.some(node => node.id === id)),
    changed: kept.filter(node => old.get(node.id) !== JSON.stringify(node)).map(node => node.id),
  }
}

/** A node that was never looked at has unknown traits; requirements must not be judged by ignorance. */
const unknownThatMatter = (
  pool: readonly ClusterNode[],
  monitor: Monitor,
  { requires = {} }: ChooseRequest,
): ClusterNode[] => {
  const { os, arch, capabilities } = requires
  const matters = (node: ClusterNode): boolean =>
    (os !== undefined && node.os === undefined) ||
    (arch !== undefined && node.arch === undefined) ||
    (capabilities ?? []).some(name => !node.capabilities.includes(name.toLowerCase()))
  return pool.filter(node => monitor.peek(node) === undefined && matters(node))
}

const candidateOf = (
  node: ClusterNode,
  known: {
    monitor: Monitor
    breakers: Breakers
    running: ReadonlyMap<string, number>
    except: ReadonlySet<string> | undefined
    self: string | undefined
  },
): Candidate => {
  const status = known.monitor.peek(node)
  const report = status?.report
  return {
    id: node.id,
    traits: {
      os: node.os ?? report?.os,
      arch: node.arch ?? report?.arch,
      capabilities: new Set([...node.capabilities, ...(report?.tools ?? [])]),
      labels: node.labels,
    },
    priority: node.priority,
    specialties: new Set(node.specialties.map(topicName)),
    maxTasks: maxTasksOf(node, report),
    running: known.running.get(node.id) ?? 0,
    measurement: report && { ...report, latencyMs: status.latencyMs, at: status.at },
    closed: closedReason(node, status, known),
    overloaded: status?.health === 'overloaded',
    isHere: node.id === known.self,
  }
}

/** Twice the cores unless the user says otherwise: a machine with something to do, not a pile-up. */
export const maxTasksOf = (node: ClusterNode, report?: ProbeReport): number =>
  node.max_tasks ?? Math.max(2, 2 * (node.cores ?? report?.cores ?? 2))

const closedReason = (
  node: ClusterNode,
  status: NodeStatus | undefined,
  known: { breakers: Breakers; except: ReadonlySet<string> | undefined },
): string | undefined => {
  if (known.except?.has(node.id)) return 'has just failed'
  if (status?.health === 'unreachable')
    return `is unreachable since ${new Date(status.since).toISOString()} (${status.reason})`
  return known.breakers.closedReason(node.id)
}
