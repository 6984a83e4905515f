import { type IncomingHttpHeaders, request } from 'node:http'
import { Readable } from 'node:stream'

export interface Asked {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>
  readonly signal?: AbortSignal
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  readonly text: string
  json<T = Record<string, unknown>>(): T
}

/** A plain HTTP request that says exactly what it is told to, a false Host included. */
export const send = (
  target: { socketPath: string } | { port: number },
  asked: Asked | string,
): Promise<Answer> => {
  const {
    method = 'GET',
    path,
    headers = {},
    body,
    signal,
  } = typeof asked === 'string' ? { path: asked } : asked
  return new Promise((resolve, reject) => {
    const outgoing = request({
      ...target,
      ...('port' in target && { host: '127.0.0.1' }),
      method,
      path,
      headers,
      agent: false,
      ...(signal && { signal }),
    })
    outgoing.once('error', reject)
    outgoing.once('response', async response => {
      const chunks: Buffer[] = []
      try {
        for await (const chunk of response) chunks.push(chunk as Buffer)
      } catch (error) {
        return reject(error)
      }
      const bytes = Buffer.concat(chunks)
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        body: bytes,
        text: bytes.toString('utf8'),
        json: () => JSON.parse(bytes.toString('utf8')),
      })
    })
    transmit(outgoing, body)
  })
}

const transmit = (outgoing: ReturnType<typeof request>, body: Asked['body']): void => {
  if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) {
    outgoing.end(body)
    return
  }
  const source = Readable.from(body, { objectMode: false })
  // The answer may come, and the connection end, before everything was said.
  outgoing.once('close', () => source.destroy())
  source.pipe(outgoing)
}
