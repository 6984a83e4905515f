import type { Cluster } from '../../nodes/cluster.ts'
import type { NodeStatus } from '../../nodes/probe/node-monitor.ts'
import type { Check, Readiness } from '../../ports.ts'
import { isolationProblem } from './bubblewrap-script.ts'

/** Probes every node. The provider is ready if at least one node answers. */
export const clusterReadiness = async (
  cluster: Cluster,
  name: string,
  routed: boolean,
): Promise<Readiness> => {
  if (cluster.nodes.length === 0) {
    const check: Check = {
      name: 'nodes',
      status: 'failed',
      message: 'no nodes are configured',
      fix: 'deputy nodes add user@host',
    }
    return { runtime: name, ready: false, checks: [check] }
  }
  const statuses = await cluster.status({ force: true, everyone: true })
  return {
    runtime: name,
    ready: statuses.some(status => status.health !== 'unreachable'),
    checks: statuses.map(status => checkOf(status, routed)),
  }
}

const checkOf = (status: NodeStatus, routed: boolean): Check => {
  const name = `node ${status.id}`
  const { report } = status
  if (status.health === 'unreachable' || report === undefined) {
    const fix = status.error?.hint
    return {
      name,
      status: 'failed',
      message: status.reason ?? 'it did not answer',
      ...(fix !== undefined && { fix }),
    }
  }
  const what = `${report.os} ${report.arch}, ${report.cores} cores, load ${report.load}, ${status.latencyMs} ms away`
  if (status.health === 'overloaded')
    return { name, status: 'warning', message: `${what}; overloaded: ${status.reason}` }
  const problem = routed ? undefined : isolationProblem(report)
  if (problem === undefined) return { name, status: 'ok', message: what }
  return {
    name,
    status: 'warning',
    message: `${what}; jobs there are not kept apart: ${problem}`,
    fix: 'Install bubblewrap on the node.',
  }
}
