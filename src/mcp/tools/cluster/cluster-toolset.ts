import type { ClusterStatus } from '../../../routing/cluster-status.ts'
import type { Toolset } from '../../toolset.ts'
import { clusterBash } from './cluster-bash.ts'
import { clusterStatus } from './cluster-status-tool.ts'
import { offloadTo } from './offload-to.ts'
import { parallelExecute } from './parallel-execute.ts'
import type { CommandTools } from './run-on-cluster.ts'

export interface ClusterTools extends CommandTools {
  readonly status: ClusterStatus
}

export const createClusterToolset = (tools: ClusterTools): Toolset => ({
  name: 'cluster',
  summary: "run commands on the user's own machines, routed by real load",
  byDefault: true,
  instructions:
    'Routed commands run as the login user of a node, without isolation; a command policy stops accidents. For untrusted work use submit_job.',
  get unlisted() {
    return tools.cluster.nodes.length === 0
  },
  tools: [clusterBash(tools), clusterStatus(tools.status), offloadTo(tools), parallelExecute(tools)],
})
