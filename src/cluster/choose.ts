import type { Breakers } from './breaker.ts'
import { candidateOf } from './candidate.ts'
import { type ClusterNode, findNode } from './inventory.ts'
import type { Monitor } from './probe/monitor.ts'
import type { Requirements } from './requirements.ts'
import { type Choice, route } from './router.ts'
import type { Seats } from './seats.ts'

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

export interface Chooser {
  /** Picks a node and takes a place on it. */
  choose(request: ChooseRequest, signal: AbortSignal): Promise<Placement>
  /** The same at once; undefined where nodes would have to be asked first. */
  chooseNow(request: ChooseRequest): Placement | undefined
}

export interface ChooserOptions {
  /** As they are now, all of them. */
  nodes(): readonly ClusterNode[]
  /** The one that this computer is, as far as is known. */
  self(): string | undefined
  monitor: Monitor
  breakers: Breakers
  seats: Seats
  now(): number
}

export const createChooser = (options: ChooserOptions): Chooser => {
  const { nodes, self, monitor, breakers, seats, now } = options
  const poolFor = ({ node }: ChooseRequest): readonly ClusterNode[] =>
    node === undefined ? nodes() : [findNode(nodes(), node)]

  const pick = (request: ChooseRequest): Placement => {
    const { except, requires, topics } = request
    const known = { monitor, breakers, running: seats.running, except, self: self() }
    const choice = route(
      poolFor(request).map(node => candidateOf(node, known)),
      { now: now(), ...(requires && { requires }), ...(topics && { topics }) },
    )
    const node = findNode(nodes(), choice.id)
    breakers.enter(node.id)
    const trying = breakers.isTrying(node.id)
    const free = seats.occupy(node.id)
    const release = (): void => {
      if (trying) breakers.leave(node.id)
      free()
    }
    const reason = request.node === undefined ? choice.reason : `${node.id} was asked for by name.`
    return { ...choice, reason, node, release }
  }

  return {
    choose: async (request, signal) => {
      const unknown = unknownThatMatter(poolFor(request), monitor, request)
      if (unknown.length > 0) await monitor.look(unknown)
      signal.throwIfAborted()
      return pick(request)
    },
    chooseNow: request =>
      unknownThatMatter(poolFor(request), monitor, request).length > 0 ? undefined : pick(request),
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
