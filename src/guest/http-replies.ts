import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError } from '../jobs/errors.ts'

export const json = (response: ServerResponse, status: number, body: unknown): void =>
  send(response, status, 'application/json', JSON.stringify(body))

export const text = (response: ServerResponse, status: number, body = ''): void =>
  send(response, status, 'text/plain; charset=utf-8', body)

/** Sets content-length, because chunked encoding costs more than these short bodies. */
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
    // Reject a truncated body.
    request.on('close', () => {
      if (!request.complete)
        reject(new AppError('unavailable', 'The client disconnected before the request was complete.'))
    })
  })

const tooLarge = (limit: number) => new AppError('too_large', `The request body exceeds ${limit} bytes.`)
