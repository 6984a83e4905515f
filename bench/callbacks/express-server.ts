import { createRequire } from 'node:module'
import type { AddressInfo, Server } from 'node:net'

/**
 * What jobs in VMs reported to before: Express, its JSON parser, and a map in memory, without tokens, checks or
 * a disk. `argv[2]` is the directory that has Express, the other arguments are the ids of jobs. Prints its port,
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
  readonly body: { progress: string; output: string; status: string; exit_code: number }
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

const app = express()
app.use(express.json({ limit: '10mb' }))

const route = (action: string, take: (job: Job, body: Request['body']) => void): void =>
  app.post(`/callback/:jobId/${action}`, (request, response) => {
    const job = jobs.get(request.params.jobId)
    if (job === undefined) return response.status(404).json({ error: 'Job not found' })
    take(job, request.body)
    response.json({ received: true })
  })

route('heartbeat', job => {
  job.lastHeartbeat = Date.now()
})
route('status', (job, { progress, output }) => {
  job.lastHeartbeat = Date.now()
  job.progress = progress
  job.output = output
})
route('complete', (job, { status, output, exit_code }) => {
  job.status = status
  job.output = output
  job.exitCode = exit_code
  job.completedAt = Date.now()
})

const server = app.listen(0, '127.0.0.1', () =>
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`),
)
process.stdin.resume().on('end', () => process.exit(0))
