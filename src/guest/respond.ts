import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError } from '../jobs/errors.ts'

export const json = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

export const text = (response: ServerResponse, status: number, body = ''): void => {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(body)
}

/** The whole body, or `too_large`. */
export const readBody = async (request: IncomingMessage, limit: number): Promise<Buffer> => {
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge(limit)
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += (chunk as Buffer).length
    if (size > limit) throw tooLarge(limit)
    chunks.push(chunk as Buffer)
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}

const tooLarge = (limit: number) => new AppError('too_large', `The body has more than ${limit} bytes.`)
