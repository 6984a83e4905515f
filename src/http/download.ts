import { parseRange } from './range.ts'
import type { Call } from './route.ts'

export interface Stored {
  readonly name: string
  readonly sha256: string
  readonly size: number
  bytes(range?: { start: number; end: number }): AsyncIterable<Uint8Array>
}

/** Bytes whose size is not known before they have been read. */
export interface Flowing {
  readonly name: string
  bytes(): AsyncIterable<Uint8Array>
}

/** Whatever a job has written must not run as a page of ours, however a browser comes to open it. */
const SAFE = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
  'cross-origin-resource-policy': 'same-origin',
} as const

/** Answers with bytes: as a whole or a part of them (Range), or that the client has them already (ETag). */
export const download = (call: Call, file: Stored | Flowing): Response => {
  const { request } = call
  const head = request.method === 'HEAD'
  const headers: Record<string, string> = {
    ...SAFE,
    'content-type': contentType(file.name),
    'content-disposition': disposition(file.name),
  }
  if (!('sha256' in file)) {
    return new Response(head ? null : streamOf(file.bytes()), {
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
  const body = head || length === 0 ? null : streamOf(file.bytes(range))
  return new Response(body, { status: range === undefined ? 200 : 206, headers })
}

/** A part of a file that has changed meanwhile is useless: then If-Range asks for the whole. */
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

/** RFC 6266: a plain name for old clients, the real one encoded. Neither can break out of the header. */
export const disposition = (path: string): string => {
  const name = path.slice(path.lastIndexOf('/') + 1) || 'download'
  const plain = name.replace(/[^\x20-\x7e]|["\\%/;]/g, '_')
  const encoded = encodeURIComponent(Buffer.from(name).toString()).replace(
    /['()*!]/g,
    char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`
}

/** Pulls from the source as fast as the client reads, and lets go of it when the client leaves. */
const streamOf = (source: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> => {
  const iterator = source[Symbol.asyncIterator]()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await iterator.next()
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      async cancel() {
        // A file stream that was never read from does not notice that its reader has gone.
        if ('destroy' in source && typeof source.destroy === 'function') source.destroy()
        await iterator.return?.()
      },
    },
    { highWaterMark: 0 },
  )
}
