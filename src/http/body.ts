import { buffer } from 'node:stream/consumers'
import type { z } from 'zod'
import { AppError } from '../jobs/errors.ts'
import { formatSize } from '../jobs/sizes.ts'
import type { Call } from './route.ts'

/** Reads a JSON body of at most `limit` bytes. A missing body is undefined. */
export const readJson = async (call: Call, limit: number): Promise<unknown> => {
  const bytes = await readBytes(call, limit)
  if (bytes.length === 0) return undefined
  let body: string
  try {
    body = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new AppError('invalid', 'The body is not UTF-8.', { hint: 'Send JSON encoded as UTF-8.' })
  }
  try {
    return JSON.parse(body)
  } catch (error) {
    throw new AppError('invalid', `The body is not JSON: ${reason(error)}.`, {
      hint: 'Send a JSON object, for example {"task": "echo hello"}.',
    })
  }
}

/** Reads a JSON body that has this schema. A missing body counts as `{}`. */
export const readBody = async <T>(call: Call, schema: z.ZodType<T>, limit: number): Promise<T> => {
  const parsed = schema.safeParse((await readJson(call, limit)) ?? {})
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map(issue => `${issue.path.join('.') || 'the body'}: ${issue.message}`)
  throw new AppError('invalid', `Invalid body: ${problems.join('; ')}.`, {
    hint: 'GET /openapi.json describes it.',
  })
}

/** Streams the body, at most `limit` bytes. */
export const bodyChunks = (call: Call, limit: number): AsyncIterable<Uint8Array> => {
  checkLength(call, limit)
  // Keep the connection open when the reader stops early: the error response is sent on it.
  const source = call.env.incoming?.iterator({ destroyOnReturn: false }) ?? call.request.body ?? []
  return capped(source, limit)
}

const readBytes = async (call: Call, limit: number): Promise<Uint8Array> => {
  // With a Content-Length, the parser enforces the length, so the adapter's fast path is safe.
  if (checkLength(call, limit)) return new Uint8Array(await call.request.arrayBuffer())
  return buffer(bodyChunks(call, limit))
}

const checkLength = (call: Call, limit: number): boolean => {
  const declared = call.request.headers.get('content-length')
  if (declared === null) return false
  if (Number(declared) > limit) throw tooLarge(Number(declared), limit)
  return true
}

async function* capped(
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  limit: number,
): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of source) {
    size += chunk.length
    if (size > limit) throw tooLarge(size, limit)
    yield chunk
  }
}

const tooLarge = (size: number, limit: number): AppError =>
  new AppError('too_large', `The body has at least ${size} bytes; the limit is ${formatSize(limit)}.`, {
    hint: 'Send large inputs as a workspace: upload a tar with PUT /api/blobs and set workspace.blob to its sha256.',
  })

/**
 * Shortens the message of JSON.parse. V8 quotes the text around the error in it, and 120 characters are enough to find
 * the place.
 */
const reason = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).slice(0, 120).replace(/\s+/g, ' ')
