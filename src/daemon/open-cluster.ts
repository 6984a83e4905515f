import { mkdirSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Home } from '../config/home.ts'
import type { Config } from '../config/schema.ts'
import type { Manifest } from '../jobs/manifest.ts'
import type { HostAccess } from '../mcp/tools/cluster/ask-for-host.ts'
import type { ClusterTools } from '../mcp/tools/cluster/cluster-toolset.ts'
import { type Cluster, createCluster } from '../nodes/cluster.ts'
import { applyClusterEnvironment } from '../nodes/cluster-variables.ts'
import { installationId } from '../nodes/installation-id.ts'
import type { ClusterConfig, ClusterNode } from '../nodes/inventory.ts'
import type { InventoryDiff } from '../nodes/inventory-diff.ts'
import { createLocalMonitor } from '../nodes/probe/local-load.ts'
import type { Environment } from '../proxmox/env-variables.ts'
import { childManifest } from '../routing/batch-manifest.ts'
import { createClusterStatus } from '../routing/cluster-status.ts'
import type { Routing } from '../routing/plan-routed.ts'

export interface DaemonCluster extends ClusterTools {
  /**
   * The tools for a client with CLUSTER_* settings of its own. Its thresholds and its timeout count for its commands. Its
   * nodes join the inventory until the daemon stops: they are machines of the same user.
   */
  forClient(variables: Environment): ClusterTools
  /** Applies a new configuration and keeps the nodes of clients. */
  update(config: ClusterConfig): InventoryDiff
  /** The manifest of one command of a batch. */
  child(manifest: Manifest, index: number): Promise<unknown>
}

/** Opens the user's nodes; the list may be empty. */
export const openCluster = (options: {
  home: Home
  config: Config
  env: NodeJS.ProcessEnv
  stopping: AbortSignal
  hostAccess: HostAccess
}): DaemonCluster => {
  const { home, config, env, hostAccess } = options
  const stateDirectory = join(home.stateDir, 'cluster')
  mkdirSync(stateDirectory, { recursive: true, mode: 0o700 })
  const cluster = createCluster({
    config: config.cluster,
    owner: installationId(stateDirectory),
    stateDirectory,
    runtimeDirectory: join(home.runtimeDir, 'ssh'),
    env,
  })
  const local = createLocalMonitor(options.stopping, env.PATH)
  const toolsFor = (view: Cluster): ClusterTools => {
    const routing: Routing = {
      cluster: view,
      local,
      get hostAllowed() {
        return hostAccess.allowed
      },
      isRoot: process.getuid?.() === 0,
      get localName() {
        return cluster.config.localName ?? cluster.self.id ?? hostname()
      },
    }
    return Object.assign(routing, { hostAccess, status: createClusterStatus(routing) })
  }
  const tools = toolsFor(cluster)
  const ofClients = new Map<string, ClusterNode>()
  const update = (next: ClusterConfig): InventoryDiff => {
    const known = new Set(next.nodes.map(({ id }) => id))
    const more = [...ofClients.values()].filter(({ id }) => !known.has(id))
    return cluster.update({ ...next, nodes: [...next.nodes, ...more] })
  }
  return Object.assign(tools, {
    update,
    forClient: (variables: Environment): ClusterTools => {
      const ownConfig = (): ClusterConfig => applyClusterEnvironment(cluster.config, variables).config
      const { nodes, ssh } = ownConfig()
      const known = new Set(cluster.nodes.map(({ id }) => id))
      const added = nodes.filter(({ id }) => !known.has(id))
      for (const node of added) ofClients.set(node.id, { user: ssh.user, ...node })
      if (added.length > 0) update(cluster.config)
      const view: Cluster = Object.create(cluster, { config: { get: ownConfig } })
      return toolsFor(view)
    },
    child: (manifest: Manifest, index: number) => childManifest(tools, manifest, index),
  })
}
