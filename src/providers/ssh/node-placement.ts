import { AppError, toAppError } from '../../jobs/errors.ts'
import { leftoverError } from '../../jobs/leftover-error.ts'
import type { Cluster } from '../../nodes/cluster.ts'
import { type ClusterNode, parseNode } from '../../nodes/inventory.ts'
import type { Placement } from '../../nodes/node-chooser.ts'
import { displayTarget } from '../../nodes/ssh/ssh-arguments.ts'
import type { Machine } from '../../ports.ts'

/** The node of a machine and the reason it was chosen. */
export interface Place {
  readonly node: ClusterNode
  readonly reason: string
  /** True if the node was removed from the inventory; `node` then holds its recorded address. */
  readonly removed?: boolean
}

/** With backoff these attempts take minutes; after that the node is assumed to be gone. */
const MAX_ATTEMPTS = 6

/** The key under which a machine's record names a run that its node may still receive. */
export const UNDELIVERED = 'undelivered'

/** The record of a machine. It includes the ssh address, so that a node removed from the inventory can be cleaned up. */
export const placeRecord = (cluster: Cluster, place: Placement): Record<string, unknown> => {
  const { id, host, port, identity, jump, fallback } = place.node
  const user = place.node.user ?? cluster.config.ssh.user
  const way = { host, user, port, identity, jump, fallback }
  const boot = cluster.ssh.bootId(id)
  return {
    node: id,
    because: place.reason,
    ...(boot !== undefined && { boot }),
    way: Object.fromEntries(Object.entries(way).filter(([, value]) => value !== undefined)),
  }
}

export const recordedPlace = (cluster: Cluster, machine: Machine): Place | undefined => {
  const { node: id, because, way } = machine.details
  if (typeof id !== 'string') return undefined
  const reason = typeof because === 'string' ? because : ''
  const node = cluster.nodes.find(known => known.id === id)
  if (node) return { node, reason }
  if (typeof way !== 'object' || way === null) throw leftoverError(...withoutWay(cluster, machine.id, id))
  return { node: parseNode({ ...way, id }), reason, removed: true }
}

/** The boot id of the node when the job was sent to it. */
export const recordedBootId = ({ details: { boot } }: Machine): string | undefined =>
  typeof boot === 'string' ? boot : undefined

/** A removed node may never answer again: after MAX_ATTEMPTS, report the leftover and give up. */
export const releaseOrReportLeftover = async (
  cluster: Cluster,
  machine: Machine & { readonly attempts?: number },
  place: Place,
  work: () => Promise<void>,
): Promise<void> => {
  if (!place.removed) return work()
  try {
    await work()
  } catch (thrown) {
    const { message, hint } = toAppError(thrown)
    const what = `Machine ${machine.id} is on node ${place.node.id}, which the inventory does not have any more`
    if ((machine.attempts ?? 0) + 1 < MAX_ATTEMPTS)
      throw new AppError('unavailable', `${what}: ${message}`, { ...(hint !== undefined && { hint }) })
    const where = displayTarget(place.node)
    throw leftoverError(
      `${what}, and it did not answer ${MAX_ATTEMPTS} times (${message}); what the machine left at ${where} stays there.`,
      `If ${where} comes back: ssh there, end what ps shows of it, and rm -rf ~/.cache/deputy/${cluster.owner}`,
    )
  }
}

const withoutWay = (cluster: Cluster, machineId: string, nodeId: string): [string, string] => [
  `Machine ${machineId} is on node ${nodeId}, which the inventory does not have any more; the way to it is not known.`,
  `Add the node again under the name ${nodeId} to have it cleaned up, or remove ~/.cache/deputy/${cluster.owner} there.`,
]
