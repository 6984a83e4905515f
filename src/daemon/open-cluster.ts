import { mkdirSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Home } from '../config/home.ts'
import type { Config } from '../config/schema.ts'
import type { Manifest } from '../jobs/manifest.ts'
import type { HostAccess } from '../mcp/tools/cluster/ask-for-host.ts'
import type { ClusterTools } from '../mcp/tools/cluster/cluster-toolset.ts'
import { createCluster } from '../nodes/cluster.ts'
import { installationId } from '../nodes/installation-id.ts'
import { createLocalMonitor } from '../nodes/probe/local-load.ts'
import { childManifest } from '../routing/batch-manifest.ts'
import { createClusterStatus } from '../routing/cluster-status.ts'
import type { Routing } from '../routing/plan-routed.ts'

export interface DaemonCluster extends ClusterTools {
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
  const routing: Routing = {
    cluster,
    local: createLocalMonitor(options.stopping, env.PATH),
    get hostAllowed() {
      return hostAccess.allowed
    },
    isRoot: process.getuid?.() === 0,
    get localName() {
      return cluster.config.localName ?? cluster.self.id ?? hostname()
    },
  }
  return Object.assign(routing, {
    hostAccess,
    status: createClusterStatus(routing),
    child: (manifest: Manifest, index: number) => childManifest(routing, manifest, index),
  })
}
