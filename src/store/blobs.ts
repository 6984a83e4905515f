import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { access, chmod, copyFile, mkdir, opendir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { AppError } from '../jobs/errors.ts'
import { formatSize } from '../jobs/sizes.ts'
import type { Blobs } from '../ports.ts'

/** Files named by their content, in 256 directories. A name that exists is complete: files arrive by rename. */
export const createBlobs = (directory: string): Blobs => {
  const pathOf = (sha256: string): string => join(directory, sha256.slice(0, 2), sha256)
  const incoming = join(directory, 'incoming')

  const place = async (from: string, sha256: string): Promise<void> => {
    const target = pathOf(sha256)
    await mkdir(join(directory, sha256.slice(0, 2)), { recursive: true, mode: 0o700 })
    await chmod(from, 0o600)
    await move(from, target)
  }

  return {
    async put(source, maxBytes) {
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
        await place(temporary, sha256)
        return { sha256, size }
      } catch (error) {
        await rm(temporary, { force: true })
        throw error
      }
    },
    adopt: (path, ref) => place(path, ref.sha256),
    has: sha256 =>
      access(pathOf(sha256)).then(
        () => true,
        () => false,
      ),
    read: (sha256, range) => createReadStream(pathOf(sha256), range),
    path: pathOf,
    remove: sha256 => rm(pathOf(sha256), { force: true }),
    removeUnfinished: () => rm(incoming, { recursive: true, force: true }),
    async *list() {
      for await (const folder of entries(directory)) {
        if (!/^[0-9a-f]{2}$/.test(folder)) continue
        for await (const sha256 of entries(join(directory, folder))) {
          const info = await stat(pathOf(sha256)).catch(() => undefined)
          if (info !== undefined) yield { sha256, size: info.size, modifiedAt: info.mtimeMs }
        }
      }
    },
  }
}

async function* entries(directory: string): AsyncGenerator<string> {
  const handle = await opendir(directory).catch(() => undefined)
  if (handle === undefined) return
  for await (const entry of handle) yield entry.name
}

/** A run's directory may lie on another file system than the state directory. */
const move = async (from: string, to: string): Promise<void> => {
  try {
    await rename(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    const temporary = `${to}.${randomUUID()}`
    await copyFile(from, temporary)
    await rename(temporary, to)
    await rm(from, { force: true })
  }
}

const tooLarge = (maxBytes: number): AppError =>
  new AppError('too_large', `The upload is larger than ${formatSize(maxBytes)}.`, {
    hint: 'Leave out what the job does not need (a .gitignore counts), or raise limits.upload in the configuration.',
  })
