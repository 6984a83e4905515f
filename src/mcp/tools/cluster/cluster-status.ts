import { z } from 'zod'
import { overloadReason } from '../../../cluster/probe/health.ts'
import { localTraits, measureLocal } from '../../../cluster/probe/local.ts'
import type { NodeStatus } from '../../../cluster/probe/monitor.ts'
import type { ListFilter } from '../../../engine/deputy.ts'
import { defineTool, reads, type Tool } from '../../tool.ts'
import type { ClusterTools } from './index.ts'
import { COMMAND_LABEL } from './plan.ts'

export const clusterStatus = (tools: ClusterTools): Tool =>
  defineTool({
    name: 'cluster_status',
    title: 'Status of the cluster',
    description:
      'Load, health and running tasks of this computer and every node; what is wrong with those that do not answer.',
    annotations: reads(true),
    input: z.strictObject({}),
    output: z.looseObject({ local_node: z.string(), nodes: z.record(z.string(), z.looseObject({})) }),
    run: async (_, { deputy, signal }) => ({
      data: await clusterStatusData(tools, {
        list: filter => deputy.list(filter),
        running: ({ id }) => tools.cluster.running(id),
        signal,
      }),
    }),
  })

export interface StatusSources {
  list(filter: ListFilter): Promise<{ jobs: readonly unknown[] }>
  /** Commands on a node. */
  running(status: NodeStatus): number
  signal: AbortSignal
}

export const clusterStatusData = async (
  tools: ClusterTools,
  { list, running, signal }: StatusSources,
): Promise<Record<string, unknown>> => {
  const [local, statuses, here] = await Promise.all([
    measureLocal(signal),
    tools.cluster.status(),
    list({ status: 'running', label: `${COMMAND_LABEL}=local`, limit: 100 }),
  ])
  const reason = overloadReason(local, tools.cluster.config.thresholds)
  const { os, arch } = localTraits()
  return {
    local_node: tools.localName,
    nodes: {
      [tools.localName]: {
        ...numbers(local),
        os,
        arch,
        ...(tools.cluster.self.address && { address: tools.cluster.self.address }),
        status: reason ? 'overloaded' : 'healthy',
        reachable: true,
        ...(reason && { reason }),
        running_tasks: here.jobs.length,
      },
      ...Object.fromEntries(statuses.map(status => [status.id, describe(tools, status, running(status))])),
    },
  }
}

const describe = (tools: ClusterTools, status: NodeStatus, running: number): Record<string, unknown> => {
  const { report } = status
  const node = tools.cluster.find(status.id)
  const common = {
    status: status.health,
    reachable: status.health !== 'unreachable',
    ...(status.reason && { reason: status.reason }),
    ...(status.error?.hint && { hint: status.error.hint }),
    since: new Date(status.since).toISOString(),
    running_tasks: running,
    ...(node.aliases.length > 0 && { aliases: node.aliases }),
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
