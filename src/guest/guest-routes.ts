import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { createDeadline } from '../jobs/deadline.ts'
import { json, readBody, text } from './http-replies.ts'
import type { JobHandler, MachineHandler } from './machine-handler.ts'
import { exitQuery, outputQuery } from './protocol.ts'

export interface Exchange {
  readonly machine: MachineHandler
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly closing: AbortSignal
  /** The job whose order was sent last over a connection, if it has no inputs to download. */
  readonly given: WeakMap<Socket, string>
}

const MAX_FRAME = 2 * 1024 * 1024
const MAX_FILE_LIST = 10 * 1024 * 1024

/** Routes below /guest/v1. */
export const handleGuest = async (
  exchange: Exchange,
  parts: readonly string[],
  query: string,
): Promise<void> => {
  const { machine, request, response } = exchange
  if (parts.length === 1 && parts[0] === 'work' && request.method === 'GET') return giveWork(exchange)
  if (parts.length === 1 && parts[0] === 'begin' && request.method === 'POST') return begin(exchange)
  const [first, jobId = '', action = '', rest = ''] = parts
  const job = first === 'jobs' ? machine.job(jobId) : undefined
  if (job === undefined) return json(response, 410, { error: 'This job is not yours, or is over.' })
  const route = `${request.method} ${action}`
  switch (route) {
    case 'POST started':
      return position(response, await job.started())
    case 'POST refused':
      await job.refused((await readBody(request, 10_000)).toString('utf8'))
      return text(response, 200)
    case 'POST output':
      return takeOutput(job, exchange, query)
    case 'POST heartbeat':
      request.resume()
      return text(response, 200, job.heartbeat())
    case 'GET inputs':
      return sendInput(job, response, Number(rest))
    case 'POST files':
      return names(response, await job.files(await readBody(request, MAX_FILE_LIST)))
    case 'PUT files':
      return names(response, await job.receive(request))
    case 'POST exit': {
      const report = exitQuery.safeParse(fields(query))
      if (!report.success) return json(response, 400, { error: 'Invalid query' })
      return text(response, 200, await job.exit(report.data))
    }
    default:
      return json(response, 404, { error: 'Not found' })
  }
}

const giveWork = async ({ machine, request, response, closing, given }: Exchange): Promise<void> => {
  const gone = new AbortController()
  request.on('close', () => gone.abort())
  const waiting = createDeadline([gone.signal, closing])
  const work = await machine.work(waiting.signal).finally(waiting.clear)
  if (work === undefined) return text(response, 204)
  if (work.isAll) given.set(request.socket, work.jobId)
  text(response, 200, work.order)
}

/** Confirms the order that was sent over the same connection, so that it cannot confirm another one. */
const begin = async ({ machine, request, response, given }: Exchange): Promise<void> => {
  request.resume()
  const jobId = given.get(request.socket)
  given.delete(request.socket)
  const job = jobId === undefined ? undefined : machine.job(jobId)
  if (job === undefined) return text(response, 204)
  const { next, order } = await job.started()
  text(response, 200, `${jobId} ${next} ${order}`)
}

const takeOutput = async (job: JobHandler, { request, response }: Exchange, query: string): Promise<void> => {
  const asked = parseOutputQuery(query)
  if (asked === undefined) return json(response, 400, { error: 'Invalid query' })
  const data = await readBody(request, MAX_FRAME)
  position(response, await job.output({ ...asked, data }))
}

/** A fast path for the form that our runner uses, thousands of times per job. */
const parseOutputQuery = (query: string) => {
  const usual = /^stream=(stdout|stderr)&offset=(\d{1,15})$/.exec(query)
  if (usual) return { stream: usual[1] as 'stdout' | 'stderr', offset: Number(usual[2]) }
  return outputQuery.safeParse(fields(query)).data
}

const sendInput = async (job: JobHandler, response: ServerResponse, index: number): Promise<void> => {
  const content = job.input(index)
  if (content === undefined) return json(response, 404, { error: 'Not found' })
  response.writeHead(200, { 'content-type': 'application/x-tar' })
  await pipeline(content, response)
}

const position = (response: ServerResponse, { next, order }: { next: number; order: string }): void =>
  text(response, 200, `${next} ${order}`)

const names = (response: ServerResponse, paths: readonly string[]): void =>
  text(response, 200, paths.map(path => `${path}\0`).join(''))

const fields = (query: string): Record<string, string> => Object.fromEntries(new URLSearchParams(query))
