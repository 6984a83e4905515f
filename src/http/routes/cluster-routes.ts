import { z } from 'zod'
import { LIMITS } from '../../jobs/limits.ts'
import { readBody } from '../body.ts'
import { allowedDirectories } from '../client-directories.ts'
import type { ClusterFront, ControlDeps } from '../deps.ts'
import { createLoadHistory } from '../load-history.ts'
import { json } from '../respond.ts'
import { type Route, route } from '../route.ts'
import { withSignal } from '../signal.ts'
import { jobSchema } from '../views.ts'

const text = z.string().trim().min(1)

const commandSchema = z.strictObject({
  command: z.string(),
  requires: z
    .strictObject({
      os: text.exactOptional(),
      arch: text.exactOptional(),
      capabilities: z.array(text).exactOptional(),
      labels: z.record(text, z.string()).exactOptional(),
    })
    .default({}),
  node: text.exactOptional().describe('Run on this node only; id or alias'),
  auto_route: z.boolean().default(true).describe('false: run on this computer'),
  cwd: z.string().startsWith('/').exactOptional().describe('Directory to run in; copied to the node'),
  timeout: z.number().min(1).max(86_400).exactOptional().describe('Seconds'),
})

const submittedSchema = z.looseObject({
  job: jobSchema,
  auto_routed: z.boolean(),
  routing: z.string().describe('Why it runs here or on a node'),
  local_node: z.string(),
})

const statusSchema = z.looseObject({
  local_node: z.string(),
  nodes: z.record(z.string(), z.looseObject({ status: z.string(), reachable: z.boolean() })),
})

export const clusterRoutes = (cluster: ClusterFront, { closing }: Pick<ControlDeps, 'closing'>): Route[] =>
  listRoutes(cluster, closing, createLoadHistory())

const listRoutes = (
  cluster: ClusterFront,
  closing: AbortSignal,
  addHistory: (status: object) => object,
): Route[] => [
  route({
    method: 'GET',
    path: '/api/cluster',
    tag: 'cluster',
    summary: 'Show load and health of this computer and every node',
    responses: { 200: { description: 'Load, health and running tasks', schema: statusSchema } },
    handle: async call => json(addHistory(await withSignal(call, closing, signal => cluster.status(signal)))),
  }),

  route({
    method: 'POST',
    path: '/api/cluster/commands',
    tag: 'cluster',
    summary: 'Run a command, as a job, on the computer that fits best',
    body: { description: 'The command', type: 'application/json', schema: commandSchema },
    responses: {
      201: { description: 'The job, and why it runs on this node or this computer', schema: submittedSchema },
    },
    handle: async call => {
      const { auto_route, timeout, ...rest } = await readBody(call, commandSchema, LIMITS.manifestBytes)
      const request = { ...rest, autoRoute: auto_route, timeoutSeconds: timeout }
      const submitted = await cluster.submit(request, call.origin, { directories: allowedDirectories(call) })
      return json(submitted, 201, { location: `/api/jobs/${submitted.job.job_id}` })
    },
  }),
]
