import { pipeline } from 'node:stream/promises'
import { extract } from 'tar-stream'
import { AppError } from '../jobs/errors.ts'
import { formatSize } from '../jobs/sizes.ts'

/** An entry of a tar from a machine. The machine is not trusted. */
export interface SentFile {
  readonly path: string
  readonly type: 'file' | 'hard-link' | 'other'
  readonly size: number
  /** The other name of a hard link. */
  readonly sameAs: string
}

export type VisitFile = (file: SentFile, content: AsyncIterable<Uint8Array>) => Promise<void>

/** Reads at most `limit` bytes of a tar, one entry after another. Content that the visitor does not read is skipped. */
export const readTarFiles = async (
  source: AsyncIterable<Uint8Array>,
  limit: number,
  visit: VisitFile,
): Promise<void> => {
  const tar = extract()
  const filled = pipeline(metered(source, limit), tar)
  filled.catch(() => {}) // The loop below throws the same error.
  try {
    for await (const entry of tar) {
      const { name, type, size, linkname } = entry.header
      const kind =
        type === 'file' || type === 'contiguous-file' ? 'file' : type === 'link' ? 'hard-link' : 'other'
      const file = { path: plain(name), type: kind, size: size ?? 0, sameAs: plain(linkname ?? '') } as const
      await visit(file, entry as AsyncIterable<Uint8Array>)
      entry.resume()
    }
    await filled
  } catch (error) {
    throw error instanceof AppError ? error : broken(error)
  } finally {
    tar.destroy()
  }
}

async function* metered(source: AsyncIterable<Uint8Array>, limit: number): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of source) {
    bytes += chunk.length
    if (bytes > limit)
      throw new AppError(
        'too_large',
        `The machine sends more than the ${formatSize(limit)} it was asked for.`,
      )
    yield chunk
  }
}

const plain = (name: string): string => name.replace(/^(\.\/)+/, '')

const broken = (cause: unknown): AppError =>
  new AppError('invalid', `The machine sent an incomplete tar: ${(cause as Error).message}.`, { cause })
