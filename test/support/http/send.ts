import { type IncomingHttpHeaders, request } from 'node:http'

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
    void transmit(outgoing, body)
  })
}

const transmit = async (outgoing: ReturnType<typeof request>, body: Asked['body']): Promise<void> => {
  if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) {
    outgoing.end(body)
    return
  }
  for await (const chunk of body) {
    if (outgoing.destroyed) return
    if (!outgoing.write(chunk))
      await new Promise<void>(resolve => {
        outgoing.once('drain', resolve)
        outgoing.once('close', resolve)
      })
  }
  outgoing.end()
}
