import { request } from 'node:https'
import type { Emulator } from './pve/emulator.ts'

export interface RawAnswer {
  status: number
  reason: string
  headers: Record<string, string | string[] | undefined>
  raw: string[]
  text: string
  json: { data?: unknown; message?: string; errors?: Record<string, string> }
}

/** One request as it is written, without the client's care. */
export const rawRequest = (
  emulator: Emulator,
  line: string,
  {
    headers = {},
    body,
    node = 0,
    anonymous = false,
  }: { headers?: Record<string, string>; body?: string | Buffer; node?: number; anonymous?: boolean } = {},
): Promise<RawAnswer> => {
  const [method, path] = line.split(' ')
  const { user, tokenName, secret } = emulator.standard
  const length =
    body !== undefined && !headers['transfer-encoding']
      ? { 'content-length': String(Buffer.byteLength(body)) }
      : {}
  const token = anonymous ? {} : { authorization: `PVEAPIToken=${user}!${tokenName}=${secret}` }
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        host: '127.0.0.1',
        port: emulator.endpoints[node]!.port,
        rejectUnauthorized: false,
        agent: false,
        method,
        path,
        headers: { ...token, ...length, ...headers },
      },
      incoming => {
        const chunks: Buffer[] = []
        incoming.on('data', chunk => chunks.push(chunk))
        incoming.on('error', reject)
        incoming.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          resolve({
            status: incoming.statusCode ?? 0,
            reason: incoming.statusMessage ?? '',
            headers: incoming.headers,
            raw: incoming.rawHeaders,
            text,
            json: text.startsWith('{') ? JSON.parse(text) : {},
          })
        })
      },
    )
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

export const form = (fields: string) => ({
  body: fields,
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
})
