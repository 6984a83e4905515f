import type { ConsoleSessions } from '../console-sessions.ts'
import type { ControlDeps } from '../deps.ts'
import type { Route } from '../route.ts'
import { approvalRoutes } from './approval-routes.ts'
import { artifactRoutes } from './artifact-routes.ts'
import { clusterRoutes } from './cluster-routes.ts'
import { consoleRoutes } from './console-routes.ts'
import { daemonRoutes } from './daemon-routes.ts'
import { eventRoutes } from './event-routes.ts'
import { healthRoutes } from './health-routes.ts'
import { jobRoutes } from './job-routes.ts'
import { machineRoutes } from './machine-routes.ts'
import { mcpRoutes } from './mcp-routes.ts'
import { openApiRoute } from './openapi-route.ts'
import { outputRoutes } from './output-routes.ts'
import { proxmoxRoutes } from './proxmox-routes.ts'
import { reviewRoutes } from './review-routes.ts'
import { sessionRoutes } from './session-routes.ts'
import { templateRoutes } from './template-routes.ts'
import { webRoutes } from './web-routes.ts'

export const controlRoutes = (deps: ControlDeps, sessions: ConsoleSessions): Route[] => {
  const routes = [
    ...jobRoutes(deps),
    ...outputRoutes(deps),
    ...eventRoutes(deps),
    ...artifactRoutes(deps),
    ...reviewRoutes(deps),
    ...machineRoutes(deps),
    ...sessionRoutes(deps),
    ...templateRoutes(deps.templates),
    ...(deps.cluster ? clusterRoutes(deps.cluster, deps) : []),
    ...approvalRoutes(deps.approvals),
    ...proxmoxRoutes(deps),
    ...daemonRoutes(deps),
    ...healthRoutes(deps),
    ...mcpRoutes(deps),
    ...consoleRoutes(sessions, deps),
    ...webRoutes(),
  ]
  return [...routes, openApiRoute(routes, deps.daemon.version)]
}
