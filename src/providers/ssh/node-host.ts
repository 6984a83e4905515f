import type { AppError } from '../../jobs/errors.ts'
import type { Cluster } from '../../nodes/cluster.ts'
import type { ClusterNode } from '../../nodes/inventory.ts'
import { failureError, neverConnected, sshFailureOf } from '../../nodes/ssh/ssh-errors.ts'
import type { RunnerHost } from '../../runner/channel.ts'
import { shellChannel } from '../../runner/shell-channel.ts'

/** How the runner on a node is reached: one session of a shared ssh connection for each exchange. */
export const nodeHost = (cluster: Cluster, node: ClusterNode): RunnerHost => ({
  name: `node ${node.id}`,
  get retries() {
    return cluster.config.ssh.retries
  },
  failed: error => cluster.failed(node, error, undefined, cluster.now()),
  connect: async signal => {
    const begun = cluster.now()
    const target = await cluster.target(node, signal)
    const channel = shellChannel(cluster.owner, {
      run: session => cluster.ssh.run({ ...session, target }),
      lost: stderr => failureError(target, 'lost', { stderr }),
      isUnsent: neverConnected,
      isConnectionError: (error): error is AppError => sshFailureOf(error) !== undefined,
    })
    return {
      ...channel,
      succeeded: () => cluster.succeeded(node, target),
      failed: error => cluster.failed(node, error, target, begun),
    }
  },
})
