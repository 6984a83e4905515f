import { randomBytes } from 'node:crypto'
import { AppError } from '../jobs/errors.ts'

export interface FilePart {
  readonly filename: string
  readonly size: number
  /** Called for each attempt, because a stream can be read only once. */
  readonly content: () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>
}

export interface Multipart {
  readonly headers: Readonly<Record<string, string>>
  readonly body: AsyncIterable<Uint8Array>
}

/**
 * The multipart parser of Proxmox VE is strict: text fields must precede the file, each part must start with exactly
 * this header, and Content-Length is required because chunked bodies are refused.
 */
export const encodeMultipart = (fields: Readonly<Record<string, string>>, file: FilePart): Multipart => {
  if (!/^[A-Za-z0-9_.-]{1,255}$/.test(file.filename)) {
    throw new AppError('invalid', `Invalid file name "${file.filename}" for a Proxmox VE storage.`, {
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
