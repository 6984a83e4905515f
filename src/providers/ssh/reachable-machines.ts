import type { Cluster } from '../../nodes/cluster.ts'
import type { ClusterNode } from '../../nodes/inventory.ts'
import type { Machine } from '../../ports.ts'
import { listWorkspaces } from '../../runner/client.ts'
import { nodeHost } from './node-host.ts'
import { recordedBootId } from './node-placement.ts'

/**
 * The machines of other daemons that are on our nodes. Another inventory may have another computer under the same name:
 * so the node must have the workspace of the machine, or the boot id that was recorded with it. If none was, because the
 * command had not been sent yet, the same address of a network is enough.
 */
export const reachableMachines = async (
  cluster: Cluster,
  machines: readonly Machine[],
  signal: AbortSignal,
): Promise<ReadonlySet<string>> => {
  const onNode = async (node: ClusterNode): Promise<Machine[]> => {
    const candidates = machines.filter(({ details }) => details.node === node.id)
    if (candidates.length === 0) return []
    const connection = await nodeHost(cluster, node).connect(signal)
    const workspaces = new Set((await listWorkspaces(connection, signal)).map(({ id }) => id))
    const boot = cluster.ssh.bootId(node.id)
    const isSame = (machine: Machine): boolean => {
      const recorded = recordedBootId(machine)
      return recorded === undefined ? hasAddressOf(node, machine) : recorded === boot
    }
    return candidates.filter(machine => workspaces.has(machine.id) || isSame(machine))
  }
  // A node that does not answer is asked again with the next call.
  const found = await Promise.all(cluster.nodes.map(node => onNode(node).catch(() => [])))
  return new Set(found.flat().map(({ id }) => id))
}

const LOOPBACK = /^(localhost|127\.|::1$)/

const hasAddressOf = (node: ClusterNode, { details: { way } }: Machine): boolean => {
  if (typeof way !== 'object' || way === null || LOOPBACK.test(node.host)) return false
  const { host, port, jump } = way as Record<string, unknown>
  return host === node.host && port === node.port && jump === node.jump
}
