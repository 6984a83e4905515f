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
  /** The tools for clients with CLUSTER_* settings of their own. Thresholds and timeouts count for their commands. */
  forClient(variables: Environment): ClientCluster
  /** Applies a new configuration and keeps the nodes of clients. */
  update(config: ClusterConfig): InventoryDiff
  /** The manifest of one command of a batch. */
  child(manifest: Manifest, index: number): Promise<unknown>
}

interface ClientCluster extends ClusterTools {
  /**
   * Adds the nodes of the client to the inventory: they are machines of the same user. The returned function removes
   * them when the client has left; what runs there finishes.
   */
  join(): () => void
}

/** Opens the user's nodes; the list may be empty. */
export const openCluster = (options: {
  home: Home
  config: Config
  /** Separates our files on nodes from those of others; absent: the id of this installation. */
  owner: string | undefined
  env: NodeJS.ProcessEnv
  stopping: AbortSignal
  hostAccess: HostAccess
  /** Called when a client with nodes of its own comes or leaves. */
  onNodesChanged(change: InventoryDiff): void
}): DaemonCluster => {
  const { home, config, env, hostAccess } = options
  const stateDirectory = join(home.stateDir, 'cluster')
  mkdirSync(stateDirectory, { recursive: true, mode: 0o700 })
  const cluster = createCluster({
    config: config.cluster,
    owner: options.owner ?? installationId(stateDirectory),
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
  let configured = config.cluster
  const joined = new Set<readonly ClusterNode[]>()
  /** The configured node wins over that of a client with the same name, and the first client over the next. */
  const applyInventory = (): InventoryDiff => {
    const nodes = new Map(configured.nodes.map(node => [node.id, node]))
    for (const node of [...joined].flat()) if (!nodes.has(node.id)) nodes.set(node.id, node)
    return cluster.update({ ...configured, nodes: [...nodes.values()] })
  }
  return Object.assign(tools, {
    update: (next: ClusterConfig): InventoryDiff => {
      configured = next
      return applyInventory()
    },
    forClient: (variables: Environment): ClientCluster => {
      const ownConfig = (): ClusterConfig => applyClusterEnvironment(cluster.config, variables).config
      const own = applyClusterEnvironment(configured, variables).config
      const known = new Set(configured.nodes.map(({ id }) => id))
      const added = own.nodes.filter(({ id }) => !known.has(id))
      const view: Cluster = Object.create(cluster, { config: { get: ownConfig } })
      const join = (): (() => void) => {
        // Each call has a list of its own: two clients with the same settings leave one by one.
        const nodes = added.map(node => ({ user: own.ssh.user, ...node }))
        if (nodes.length === 0) return () => {}
        joined.add(nodes)
        options.onNodesChanged(applyInventory())
        return () => {
          if (joined.delete(nodes)) options.onNodesChanged(applyInventory())
        }
      }
      return Object.assign(toolsFor(view), { join })
    },
    child: (manifest: Manifest, index: number) => childManifest(tools, manifest, index),
  })
}
