import type { CircuitBreakers } from './circuit-breaker.ts'
import type { ClusterNode } from './inventory.ts'
import type { NodeMonitor, NodeStatus } from './probe/node-monitor.ts'
import type { ProbeReport } from './probe/probe-report.ts'
import type { Traits } from './requirements.ts'
import type { Candidate } from './router.ts'
import { topicName } from './topics.ts'

/** Describes a node for the router. */
export const candidateOf = (
  node: ClusterNode,
  known: {
    monitor: NodeMonitor
    breakers: CircuitBreakers
    running(id: string): number
    except: ReadonlySet<string> | undefined
    self: string | undefined
  },
): Candidate => {
  const status = known.monitor.peek(node)
  const report = status?.report
  return {
    id: node.id,
    traits: traitsOf(node, report),
    priority: node.priority,
    specialties: new Set(node.specialties.map(topicName)),
    maxTasks: maxTasksOf(node, report),
    running: known.running(node.id),
    measurement: report && { ...report, latencyMs: status.latencyMs, at: status.at },
    blocked: blockedReason(node, status, known),
    overloaded: status?.health === 'overloaded',
    isLocal: node.id === known.self,
  }
}

/** What a node has: what the configuration says, else what the last probe found. */
export const traitsOf = (node: ClusterNode, report: ProbeReport | undefined): Traits => ({
  os: node.os ?? report?.os,
  arch: node.arch ?? report?.arch,
  capabilities: new Set([...node.capabilities, ...(report?.tools ?? [])]),
  labels: node.labels,
})

/** Defaults to twice the cores: enough to keep the node busy without a backlog. */
export const maxTasksOf = (node: ClusterNode, report?: ProbeReport): number =>
  node.max_tasks ?? Math.max(2, 2 * (node.cores ?? report?.cores ?? 2))

const blockedReason = (
  node: ClusterNode,
  status: NodeStatus | undefined,
  known: { breakers: CircuitBreakers; except: ReadonlySet<string> | undefined },
): string | undefined => {
  if (known.except?.has(node.id)) return 'has just failed'
  if (status?.health === 'unreachable')
    return `is unreachable since ${new Date(status.since).toISOString()} (${status.reason})`
  return known.breakers.blockedReason(node.id)
}
