import { createRequire } from 'node:module'
import type { AddressInfo, Server } from 'node:net'
import { z } from 'zod'

/**
 * What jobs in VMs reported to before: Express, its JSON parser, a schema for each report, and a map in memory,
 * without tokens or a disk. `argv[2]` is the directory that has Express, the other arguments are the ids of jobs. Prints its port,
 * and ends with its standard input.
 */
interface Job {
  status: string
  output: string
  lastHeartbeat: number
  progress?: string
  exitCode?: number
  completedAt?: number
}

interface Request {
  readonly params: { readonly jobId: string }
  readonly body: unknown
}

interface Response {
  status(code: number): Response
  json(body: unknown): void
}

interface App {
  use(middleware: unknown): void
  post(path: string, handler: (request: Request, response: Response) => void): void
  listen(port: number, host: string, done: () => void): Server
}

const express = createRequire(`${process.argv[2]}/`)('express') as {
  (): App
  json(options: { limit: string }): unknown
}
const jobs = new Map<string, Job>()
for (const id of process.argv.slice(3)) jobs.set(id, { status: 'running', output: '', lastHeartbeat: 0 })

const statusReport = z.object({ job_id: z.uuid(), progress: z.string(), output: z.string().optional() })
const completeReport = z.object({
  job_id: z.uuid(),
  status: z.enum(['success', 'failed']),
  exit_code: z.number(),
  output: z.string(),
  artifacts: z.array(z.unknown()).optional(),
  duration_seconds: z.number(),
  error: z.string().optional(),
})

const app = express()
app.use(express.json({ limit: '10mb' }))

const route = <T>(action: string, schema: z.ZodType<T>, take: (job: Job, report: T) => void): void =>
  app.post(`/callback/:jobId/${action}`, (request, response) => {
    const job = jobs.get(request.params.jobId)
    if (job === undefined) return response.status(404).json({ error: 'Job not found' })
    const report = schema.safeParse(request.body)
    if (!report.success)
      return response.status(400).json({ error: 'Invalid payload', details: report.error.issues })
    take(job, report.data)
    response.json({ received: true })
  })

route('heartbeat', z.unknown(), job => {
  job.lastHeartbeat = Date.now()
})
route('status', statusReport, (job, { progress, output }) => {
  job.lastHeartbeat = Date.now()
  job.progress = progress
  if (output !== undefined) job.output = output
})
route('complete', completeReport, (job, { status, output, exit_code }) => {
  job.status = status
  job.output = output
  job.exitCode = exit_code
  job.completedAt = Date.now()
})

const server = app.listen(0, '127.0.0.1', () =>
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`),
)
process.stdin.resume().on('end', () => process.exit(0))
