import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfig } from '../../config/load.ts'
import { type Cluster, createCluster } from '../../nodes/cluster.ts'
import type { ClusterConfig } from '../../nodes/inventory.ts'
import type { Context } from '../context.ts'

export const clusterConfig = async (context: Context): Promise<ClusterConfig> => {
  const { config, warnings } = loadConfig(context.home, context.env)
  for (const warning of warnings) await context.err.write(`${warning}\n`)
  return config.cluster
}

/** Connects to the nodes from this process: works without a daemon, with the keys and agent of this shell. */
export const withCluster = async <T>(
  context: Context,
  config: ClusterConfig,
  work: (cluster: Cluster) => Promise<T>,
): Promise<T> => {
  const stateDirectory = join(context.home.stateDir, 'cluster')
  mkdirSync(stateDirectory, { recursive: true, mode: 0o700 })
  const cluster = createCluster({
    config,
    owner: 'cli',
    stateDirectory,
    runtimeDirectory: join(context.home.runtimeDir, 'ssh'),
    env: context.env,
  })
  try {
    return await work(cluster)
  } finally {
    cluster.close()
  }
}
