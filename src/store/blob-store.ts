import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { access, chmod, copyFile, link, mkdir, opendir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { flushToDisk } from '../files/flush.ts'
import { AppError } from '../jobs/errors.ts'
import { formatSize } from '../jobs/sizes.ts'
import type { Blobs, Store } from '../ports.ts'

/** The part of the store that knows which blobs are still needed. */
export type BlobReferences = Pick<Store, 'holdBlob' | 'isBlobUsed'>

/**
 * Stores files under the hash of their content, in 256 directories. A file with its final name is complete and on disk:
 * the content is flushed before the rename, and the directory before the call returns.
 */
export const createBlobs = (directory: string, references: BlobReferences): Blobs => {
  const pathOf = (sha256: string): string => join(directory, sha256.slice(0, 2), sha256)
  const incoming = join(directory, 'incoming')
  const withBlobLock = createLocks()

  /** Marks a blob as used. Waits for a removal in progress; later removals skip the blob. */
  const hold = (sha256: string, holder: string): Promise<void> =>
    withBlobLock(sha256, () => references.holdBlob(sha256, holder))

  /** Flushes the temporary file, then renames it to its hash. */
  const place = async (temporary: string, sha256: string, holder: string): Promise<void> => {
    const target = pathOf(sha256)
    const created = await mkdir(dirname(target), { recursive: true, mode: 0o700 })
    if (created !== undefined) await flushToDisk(directory)
    await flushToDisk(temporary)
    await hold(sha256, holder)
    await rename(temporary, target)
    await flushToDisk(dirname(target))
  }

  return {
    async put(source, maxBytes, holder) {
      await mkdir(incoming, { recursive: true, mode: 0o700 })
      const temporary = join(incoming, randomUUID())
      const hash = createHash('sha256')
      let size = 0
      try {
        await pipeline(
          source,
          async function* (chunks: AsyncIterable<Uint8Array>) {
            for await (const chunk of chunks) {
              size += chunk.length
              if (size > maxBytes) throw tooLarge(maxBytes)
              hash.update(chunk)
              yield chunk
            }
          },
          createWriteStream(temporary, { mode: 0o600 }),
        )
        const sha256 = hash.digest('hex')
        await place(temporary, sha256, holder)
        return { sha256, size }
      } catch (error) {
        await rm(temporary, { force: true })
        throw error
      }
    },
    async adopt(path, { sha256 }, holder) {
      await mkdir(incoming, { recursive: true, mode: 0o700 })
      const temporary = join(incoming, randomUUID())
      try {
        await linkOrCopy(path, temporary)
        await chmod(temporary, 0o600)
        await place(temporary, sha256, holder)
      } catch (error) {
        await rm(temporary, { force: true })
        throw error
      }
    },
    async hold(sha256, holder) {
      await hold(sha256, holder)
      return access(pathOf(sha256)).then(
        () => true,
        () => false,
      )
    },
    read: (sha256, range) => createReadStream(pathOf(sha256), range),
    fetch: async () => {},
    path: pathOf,
    removeUnused: sha256 =>
      withBlobLock(sha256, async () => {
        if (!(await references.isBlobUsed(sha256))) await rm(pathOf(sha256), { force: true })
      }),
    removeUnfinished: () => rm(incoming, { recursive: true, force: true }),
    async *list() {
      for await (const folder of entries(directory)) {
        if (!/^[0-9a-f]{2}$/.test(folder)) continue
        yield* entries(join(directory, folder))
      }
    },
  }
}

async function* entries(directory: string): AsyncGenerator<string> {
  const handle = await opendir(directory).catch(() => undefined)
  if (handle === undefined) return
  for await (const entry of handle) yield entry.name
}

/** The directory of a run may be on another file system than the state directory. */
const linkOrCopy = async (from: string, to: string): Promise<void> => {
  try {
    await link(from, to)
  } catch (error) {
    if (!['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP'].includes((error as NodeJS.ErrnoException).code ?? ''))
      throw error
    await copyFile(from, to)
  }
}

/** Runs work on the same key one after the other. */
const createLocks = () => {
  const last = new Map<string, Promise<unknown>>()
  return async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const mine = (last.get(key) ?? Promise.resolve()).then(work, work)
    last.set(key, mine)
    try {
      return await mine
    } finally {
      if (last.get(key) === mine) last.delete(key)
    }
  }
}

const tooLarge = (maxBytes: number): AppError =>
  new AppError('too_large', `The upload is larger than ${formatSize(maxBytes)}.`, {
    hint: 'Exclude files that the job does not need (in .gitignore), or raise limits.upload in the configuration.',
  })
