import { Agent, request } from 'node:http'

export interface LoadOptions {
  readonly socketPath: string
  readonly count: number
  readonly inFlight: number
  /** What to send as the n-th request; a body makes it a POST. */
  next(n: number): { readonly path: string; readonly body?: string }
}

export interface Load {
  readonly perSecond: number
  /** Milliseconds of each request. */
  readonly times: readonly number[]
}

/** Keeps so many requests in flight until all are done. An answer that is no success is an error. */
export const load = async ({ socketPath, count, inFlight, next }: LoadOptions): Promise<Load> => {
  const agent = new Agent({ keepAlive: true, maxSockets: inFlight })
  const times: number[] = []
  let sent = 0
  const worker = async (): Promise<void> => {
    while (sent < count) {
      const { path, body } = next(sent++)
      const began = performance.now()
      await exchange({ socketPath, agent, path, ...(body !== undefined && { body }) })
      times.push(performance.now() - began)
    }
  }
  const began = performance.now()
  await Promise.all(Array.from({ length: inFlight }, worker))
  const seconds = (performance.now() - began) / 1000
  agent.destroy()
  return { perSecond: count / seconds, times }
}

interface Exchange {
  readonly socketPath: string
  readonly agent: Agent
  readonly path: string
  readonly body?: string
}

const exchange = ({ socketPath, agent, path, body }: Exchange): Promise<void> =>
  new Promise((resolve, reject) => {
    const headers =
      body === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const outgoing = request(
      { socketPath, agent, path, method: body === undefined ? 'GET' : 'POST', headers },
      response => {
        const { statusCode = 0 } = response
        response.on('data', () => {})
        response.on('end', () =>
          statusCode < 300 ? resolve() : reject(new Error(`${path} was answered with ${statusCode}`)),
        )
      },
    )
    outgoing.on('error', reject)
    outgoing.end(body)
  })
