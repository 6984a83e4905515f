import { parseRange } from './range.ts'
import type { Call } from './route.ts'

export interface Stored {
  readonly name: string
  readonly sha256: string
  readonly size: number
  bytes(range?: { start: number; end: number }): AsyncIterable<Uint8Array>
}

/** Bytes of unknown size. */
export interface Flowing {
  readonly name: string
  bytes(): AsyncIterable<Uint8Array>
}

/** Content written by a job must never run as a page of this origin. */
const SAFE = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
  'cross-origin-resource-policy': 'same-origin',
} as const

/** Answers with a file: the whole, a range (Range), or 304 if the client has it (ETag). */
export const download = async (call: Call, file: Stored | Flowing): Promise<Response> => {
  const { request } = call
  const head = request.method === 'HEAD'
  const headers: Record<string, string> = {
    ...SAFE,
    'content-type': contentType(file.name),
    'content-disposition': disposition(file.name),
  }
  if (!('sha256' in file)) {
    return new Response(head ? null : await streamOf(file.bytes(), request.signal), {
      headers: { ...headers, 'cache-control': 'no-store' },
    })
  }

  const etag = `"${file.sha256}"`
  Object.assign(headers, { etag, 'accept-ranges': 'bytes', 'cache-control': 'private, no-cache' })
  if (matches(request.headers.get('if-none-match'), etag)) return new Response(null, { status: 304, headers })

  const range = wantedRange(request.headers, etag, file.size)
  if (range === 'unsatisfiable') {
    headers['content-range'] = `bytes */${file.size}`
    return new Response(null, { status: 416, headers })
  }
  if (range !== undefined) headers['content-range'] = `bytes ${range.start}-${range.end}/${file.size}`
  const length = range === undefined ? file.size : range.end - range.start + 1
  headers['content-length'] = String(length)
  const body = head || length === 0 ? null : await streamOf(file.bytes(range), request.signal)
  return new Response(body, { status: range === undefined ? 200 : 206, headers })
}

/** If-Range requests the whole file if it has changed since the first part. */
const wantedRange = (headers: Headers, etag: string, size: number) => {
  const ifRange = headers.get('if-range')
  return ifRange !== null && ifRange !== etag ? undefined : parseRange(headers.get('range'), size)
}

const matches = (header: string | null, etag: string): boolean =>
  (header ?? '').split(',').some(entry => ['*', etag, `W/${etag}`].includes(entry.trim()))

const TEXT =
  /\.(txt|log|md|csv|tsv|json|jsonl|ya?ml|toml|xml|patch|diff|[cm]?[jt]sx?|py|sh|rs|go|c|h|java|sql)$/i

const contentType = (name: string): string =>
  TEXT.test(name) ? 'text/plain; charset=utf-8' : 'application/octet-stream'

/** RFC 6266: a plain name for old clients, and the encoded real name. Neither can break out of the header. */
export const disposition = (path: string): string => {
  const name = path.slice(path.lastIndexOf('/') + 1) || 'download'
  const plain = name.replace(/[^\x20-\x7e]|["\\%/;]/g, '_')
  const encoded = encodeURIComponent(Buffer.from(name).toString()).replace(
    /['()*!]/g,
    char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`
}

/**
 * Reads the source as fast as the client reads, and closes it when the client disconnects. Reads the first chunk
 * before the response starts, so that an unreadable file is an error and not a partial download.
 */
export const streamOf = async (
  source: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> => {
  const iterator = source[Symbol.asyncIterator]()
  const release = async (): Promise<void> => void (await iterator.return?.())
  let ahead: IteratorResult<Uint8Array> | undefined = await iterator.next()
  // If the client has already disconnected, nobody reads or cancels the response.
  signal.addEventListener('abort', release, { once: true })
  if (signal.aborted) await release()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = ahead ?? (await iterator.next())
        ahead = undefined
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      cancel: release,
    },
    { highWaterMark: 0 },
  )
}
