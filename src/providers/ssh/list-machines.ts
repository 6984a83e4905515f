import type { Cluster } from '../../nodes/cluster.ts'
import type { ClusterNode } from '../../nodes/inventory.ts'
import type { FoundMachine, Machine, Provider } from '../../ports.ts'
import { listWorkspaces } from '../../runner/client.ts'
import { nodeHost } from './node-host.ts'

/** Lists the workspaces on all nodes. For a node that does not answer it returns what was found last. */
export const createMachineLister = (cluster: Cluster): Provider['list'] => {
  const listed = new Map<string, FoundMachine[]>()
  const away = new Set<string>()

  const listOn = async (node: ClusterNode, signal: AbortSignal): Promise<FoundMachine[]> => {
    try {
      const channel = await nodeHost(cluster, node).connect(signal)
      const workspaces = await listWorkspaces(channel, signal)
      const found = workspaces.map(({ id, createdAt }) => ({ id, createdAt, details: { node: node.id } }))
      listed.set(node.id, found)
      away.delete(node.id)
      return found
    } catch {
      signal.throwIfAborted()
      away.add(node.id)
      return listed.get(node.id) ?? []
    }
  }

  // The machines of a node can be listed only if it is in the inventory and answers.
  const isUnseen = ({ details: { node } }: Machine): boolean =>
    away.has(String(node)) || !cluster.nodes.some(({ id }) => id === node)

  return async (signal, known = []) => {
    const all = await Promise.all(cluster.nodes.map(node => listOn(node, signal)))
    return [...all.flat(), ...known.filter(isUnseen).map(({ id, details }) => ({ id, details }))]
  }
}
