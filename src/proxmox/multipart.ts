import { randomBytes } from 'node:crypto'
import { AppError } from '../jobs/errors.ts'

export interface FilePart {
  readonly filename: string
  readonly size: number
  /** Called for each attempt, because a stream can be read once. */
  readonly content: () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>
}

export interface Multipart {
  readonly headers: Readonly<Record<string, string>>
  readonly body: AsyncIterable<Uint8Array>
}

/**
 * Proxmox VE's own parser is strict: text fields come before the file, each part starts with exactly
 * this header, and the length must be known before the first byte because chunks are refused.
 */
export const encodeMultipart = (fields: Readonly<Record<string, string>>, file: FilePart): Multipart => {
  if (!/^[A-Za-z0-9_.-]{1,255}$/.test(file.filename)) {
    throw new AppError('invalid', `"${file.filename}" is no file name for a Proxmox VE storage.`, {
      hint: 'Use letters, digits, dots, dashes and underscores.',
    })
  }
  const boundary = `----deputy${randomBytes(16).toString('hex')}`
  const head = Buffer.from(
    Object.entries(fields)
      .map(
        ([name, value]) =>
          `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
      )
      .join('') +
      `--${boundary}\r\nContent-Disposition: form-data; name="filename"; filename="${file.filename}"\r\n` +
      'Content-Type: application/octet-stream\r\n\r\n',
  )
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  return {
    headers: {
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': String(head.length + file.size + tail.length),
    },
    body: { [Symbol.asyncIterator]: () => join(head, file.content(), tail) },
  }
}

async function* join(
  head: Uint8Array,
  content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  tail: Uint8Array,
): AsyncGenerator<Uint8Array> {
  yield head
  yield* content
  yield tail
}
