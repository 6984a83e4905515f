import type { ConsoleSessions } from '../console-sessions.ts'
import type { ControlDeps } from '../deps.ts'
import type { Route } from '../route.ts'
import { approvalRoutes } from './approvals.ts'
import { artifactRoutes } from './artifacts.ts'
import { clusterRoutes } from './cluster.ts'
import { consoleRoutes } from './console.ts'
import { daemonRoutes } from './daemon.ts'
import { eventRoutes } from './events.ts'
import { healthRoutes } from './health.ts'
import { jobRoutes } from './jobs.ts'
import { machineRoutes } from './machines.ts'
import { mcpRoutes } from './mcp.ts'
import { openApiRoute } from './openapi.ts'
import { outputRoutes } from './output.ts'
import { reviewRoutes } from './reviews.ts'
import { webRoutes } from './web.ts'

export const controlRoutes = (deps: ControlDeps, sessions: ConsoleSessions): Route[] => {
  const routes = [
    ...jobRoutes(deps),
    ...outputRoutes(deps),
    ...eventRoutes(deps),
    ...artifactRoutes(deps),
    ...reviewRoutes(deps),
    ...machineRoutes(deps),
    ...(deps.cluster ? clusterRoutes(deps.cluster, deps) : []),
    ...approvalRoutes(deps.approvals),
    ...daemonRoutes(deps),
    ...healthRoutes(deps),
    ...mcpRoutes(deps),
    ...consoleRoutes(sessions, deps),
    ...webRoutes(),
  ]
  return [...routes, openApiRoute(routes, deps.daemon.version)]
}
