import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError } from '../jobs/errors.ts'

export const json = (response: ServerResponse, status: number, body: unknown): void =>
  send(response, status, 'application/json', JSON.stringify(body))

export const text = (response: ServerResponse, status: number, body = ''): void =>
  send(response, status, 'text/plain; charset=utf-8', body)

/** With its length: an answer in chunks costs both sides more than the few bytes it holds. */
const send = (response: ServerResponse, status: number, type: string, body: string): void => {
  const length = status === 204 ? {} : { 'content-length': Buffer.byteLength(body) }
  response.writeHead(status, { 'content-type': type, ...length }).end(body)
}

/** The whole body, or `too_large`. */
export const readBody = (request: IncomingMessage, limit: number): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    if (Number(request.headers['content-length'] ?? 0) > limit) return reject(tooLarge(limit))
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > limit) reject(tooLarge(limit))
      else chunks.push(chunk)
    })
    request.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    request.on('error', reject)
    // A sender that goes away in the middle has sent nothing.
    request.on('close', () => {
      if (!request.complete) reject(new AppError('unavailable', 'The sender went away.'))
    })
  })

const tooLarge = (limit: number) => new AppError('too_large', `The body has more than ${limit} bytes.`)
