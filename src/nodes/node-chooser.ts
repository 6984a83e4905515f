import { candidateOf } from './candidate.ts'
import type { CircuitBreakers } from './circuit-breaker.ts'
import { type ClusterNode, findNode } from './inventory.ts'
import type { NodeMonitor } from './probe/node-monitor.ts'
import type { Requirements } from './requirements.ts'
import { type Choice, route } from './router.ts'
import type { Slots } from './slots.ts'

export interface ChooseRequest {
  requires?: Requirements
  /** Use only this node. */
  node?: string | undefined
  topics?: readonly string[]
  /** Nodes to skip because they have just failed. */
  except?: ReadonlySet<string>
}

export interface Placement extends Choice {
  node: ClusterNode
  release(): void
}

export interface NodeChooser {
  /** Picks a node and takes a slot on it. */
  choose(request: ChooseRequest, signal: AbortSignal): Promise<Placement>
}

interface NodeChooserOptions {
  /** The current inventory. */
  nodes(): readonly ClusterNode[]
  /** The id of the node that is this computer, once known. */
  self(): string | undefined
  monitor: NodeMonitor
  breakers: CircuitBreakers
  slots: Slots
  now(): number
}

export const createNodeChooser = (options: NodeChooserOptions): NodeChooser => {
  const { nodes, self, monitor, breakers, slots, now } = options
  const poolFor = ({ node }: ChooseRequest): readonly ClusterNode[] =>
    node === undefined ? nodes() : [findNode(nodes(), node)]

  const pick = (request: ChooseRequest): Placement => {
    const { except, requires, topics } = request
    const known = { monitor, breakers, running: slots.inUse, except, self: self() }
    const choice = route(
      poolFor(request).map(node => candidateOf(node, known)),
      { now: now(), ...(requires && { requires }), ...(topics && { topics }) },
    )
    const node = findNode(nodes(), choice.id)
    breakers.startTrial(node.id)
    const inTrial = breakers.inTrial(node.id)
    const releaseSlot = slots.acquire(node.id)
    const release = (): void => {
      if (inTrial) breakers.endTrial(node.id)
      releaseSlot()
    }
    const reason = request.node === undefined ? choice.reason : `${node.id} was requested by name.`
    return { ...choice, reason, node, release }
  }

  return {
    choose: async (request, signal) => {
      const unprobed = nodesToProbe(poolFor(request), monitor, request)
      if (unprobed.length > 0) await monitor.check(unprobed)
      signal.throwIfAborted()
      return pick(request)
    },
  }
}

/** Nodes whose traits decide about the requirements and are unknown because they were never probed. */
const nodesToProbe = (
  pool: readonly ClusterNode[],
  monitor: NodeMonitor,
  { requires = {} }: ChooseRequest,
): ClusterNode[] => {
  const { os, arch, capabilities } = requires
  const matters = (node: ClusterNode): boolean =>
    (os !== undefined && node.os === undefined) ||
    (arch !== undefined && node.arch === undefined) ||
    (capabilities ?? []).some(name => !node.capabilities.includes(name.toLowerCase()))
  return pool.filter(node => monitor.peek(node) === undefined && matters(node))
}
