import { AppError } from '../../../../jobs/errors.ts'
import type { Composite } from '../row-context.ts'
import { items, text } from './values.ts'

/** Healthy means that all nodes are online and the cluster is quorate. */
export const clusterStatus: Composite = async (_, { call }) => {
  const entries = items(await call('GET /cluster/status', {}))
  const cluster = entries.find(one => one.type === 'cluster')
  const nodes = entries.filter(one => one.type === 'node')
  const offline = nodes.filter(one => Number(one.online) !== 1).map(one => text(one, 'name'))
  const quorate = cluster ? Number(cluster.quorate) === 1 : true
  return {
    name: cluster ? text(cluster, 'name') : null,
    clustered: cluster !== undefined,
    quorate,
    healthy: quorate && offline.length === 0,
    nodes: nodes.map(one => ({
      name: one.name,
      online: Number(one.online) === 1,
      ip: one.ip ?? null,
      id: Number(one.nodeid ?? 0),
    })),
    ...(offline.length > 0 && { offline }),
  }
}

/** The API has no request for a single member. */
export const clusterNode: Composite = async ({ node }, { call }) => {
  const found = items(await call('GET /cluster/config/nodes', {})).find(
    one => (one.node ?? one.name) === node,
  )
  if (found) return found
  throw new AppError('not_found', `Node '${String(node)}' is not a member of the cluster.`, {
    hint: 'proxmox_cluster_config list_nodes lists them.',
  })
}
