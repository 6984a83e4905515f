import type { Deputy } from '../engine/deputy.ts'
import { COMMAND_LABEL } from '../jobs/labels.ts'
import { localTraits, measureLocal } from '../nodes/probe/local-load.ts'
import { overloadReason } from '../nodes/probe/node-health.ts'
import type { NodeStatus } from '../nodes/probe/node-monitor.ts'
import type { Routing } from './plan-routed.ts'

export interface ClusterStatusView {
  readonly local_node: string
  readonly nodes: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

export type ClusterStatus = (deputy: Pick<Deputy, 'list'>, signal: AbortSignal) => Promise<ClusterStatusView>

/**
 * Creates the status report of this computer and its nodes. Create one per daemon: it remembers since when the status
 * holds.
 */
export const createClusterStatus = (routing: Routing): ClusterStatus => {
  let known = { status: '', since: Date.now() }
  const sinceOf = (status: string): string => {
    if (known.status !== status) known = { status, since: Date.now() }
    return new Date(known.since).toISOString()
  }
  return async (deputy, signal) => {
    const { cluster, localName } = routing
    const [local, statuses, here] = await Promise.all([
      measureLocal(signal),
      cluster.status(),
      deputy.list({ status: 'running', label: `${COMMAND_LABEL}=local`, limit: 100 }),
    ])
    const reason = overloadReason(local, cluster.config.thresholds)
    const health = reason ? 'overloaded' : 'healthy'
    const { os, arch } = localTraits()
    return {
      local_node: localName,
      nodes: {
        [localName]: {
          status: health,
          reachable: true,
          ...(reason && { reason }),
          since: sinceOf(health),
          running_tasks: here.jobs.length,
          ...numbers(local),
          os,
          arch,
          ...(cluster.self.address && { address: cluster.self.address }),
        },
        ...Object.fromEntries(statuses.map(status => [status.id, describe(routing, status)])),
      },
    }
  }
}

const describe = ({ cluster }: Routing, status: NodeStatus): Record<string, unknown> => {
  const { report } = status
  const node = cluster.find(status.id)
  const common = {
    status: status.health,
    reachable: status.health !== 'unreachable',
    ...(status.reason && { reason: status.reason }),
    ...(status.error?.hint && { hint: status.error.hint }),
    since: new Date(status.since).toISOString(),
    running_tasks: cluster.slots.inUse(status.id),
    ...(node.aliases.length > 0 && { aliases: node.aliases }),
    ...(node.capabilities.length > 0 && { capabilities: node.capabilities }),
  }
  if (!report || status.health === 'unreachable') return common
  return { ...common, ...numbers(report), os: report.os, arch: report.arch, latency_ms: status.latencyMs }
}

const numbers = (load: { cpu: number; memory: number; load: number; cores: number; disk: number }) => ({
  cpu_percent: load.cpu,
  memory_percent: load.memory,
  load_1m: load.load,
  cores: load.cores,
  disk_percent: load.disk,
})
