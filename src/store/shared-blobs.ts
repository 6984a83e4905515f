import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { access } from 'node:fs/promises'
import { AppError } from '../jobs/errors.ts'
import type { Blobs } from '../ports.ts'

/** Contents of blobs in a database that several daemons share. */
export interface SharedParts {
  /** Undefined when the blob is not complete. */
  size(sha256: string): Promise<number | undefined>
  write(sha256: string, part: number, data: Uint8Array): Promise<void>
  complete(sha256: string, size: number): Promise<void>
  read(sha256: string, part: number): Promise<Uint8Array | undefined>
  /** Removes the blob unless a job refers to it or a holder holds it. */
  removeUnused(sha256: string): Promise<void>
  /** Stored blobs that nothing refers to. */
  listUnused(): Promise<string[]>
}

/** Parts are read and written one at a time, so memory does not grow with the size of a blob. */
const PART_BYTES = 512 * 1024

/** Holds a fetched file until the sweep: it may be fetched again. */
const CACHE = 'cache'

/**
 * Files of this daemon, with their contents in the shared database. A blob is in the database before the call that
 * stores it returns; the file is then a copy, and other daemons fetch theirs when they need it.
 */
export const shareBlobs = (files: Blobs, parts: SharedParts): Blobs => {
  const hasFile = (sha256: string): Promise<boolean> =>
    access(files.path(sha256)).then(
      () => true,
      () => false,
    )

  /** The blob is held already, so that no daemon removes its parts meanwhile. */
  const upload = async (sha256: string): Promise<void> => {
    if ((await parts.size(sha256)) !== undefined) return
    let part = 0
    let size = 0
    for await (const data of createReadStream(files.path(sha256), { highWaterMark: PART_BYTES })) {
      await parts.write(sha256, part++, data as Buffer)
      size += (data as Buffer).length
    }
    await parts.complete(sha256, size)
  }

  async function* download(
    sha256: string,
    { start, end }: { start: number; end: number },
  ): AsyncGenerator<Uint8Array> {
    for (let part = Math.floor(start / PART_BYTES); part * PART_BYTES <= end; part++) {
      const data = await parts.read(sha256, part)
      if (data === undefined) throw missing(sha256)
      const from = part * PART_BYTES
      yield data.subarray(Math.max(0, start - from), Math.min(data.length, end + 1 - from))
    }
  }

  const whole = async (sha256: string): Promise<{ start: number; end: number }> => {
    const size = await parts.size(sha256)
    if (size === undefined) throw missing(sha256)
    return { start: 0, end: size - 1 }
  }

  const fetch = async (sha256: string): Promise<void> => {
    if (await hasFile(sha256)) return
    const range = await whole(sha256)
    await files.put(checked(sha256, download(sha256, range)), range.end + 1, CACHE)
  }

  return {
    ...files,
    put: async (source, maxBytes, holder) => {
      const ref = await files.put(source, maxBytes, holder)
      await upload(ref.sha256)
      return ref
    },
    adopt: async (path, ref, holder) => {
      await files.adopt(path, ref, holder)
      await upload(ref.sha256)
    },
    hold: async (sha256, holder) => {
      await files.hold(sha256, holder)
      return (await parts.size(sha256)) !== undefined
    },
    fetch,
    async *read(sha256, range) {
      if (await hasFile(sha256)) yield* files.read(sha256, range)
      else yield* download(sha256, range ?? (await whole(sha256)))
    },
    removeUnused: async sha256 => {
      await files.removeUnused(sha256)
      await parts.removeUnused(sha256)
    },
    async *list() {
      yield* files.list()
      yield* await parts.listUnused()
    },
  }
}

/** Ends with an error, so that no damaged file gets a name. */
async function* checked(sha256: string, source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256')
  for await (const data of source) {
    hash.update(data)
    yield data
  }
  if (hash.digest('hex') !== sha256) throw missing(sha256)
}

const missing = (sha256: string): AppError =>
  new AppError('internal', `The database has no complete blob ${sha256}.`, {
    hint: 'It was stored before this daemon shared its database, or the database was restored without it.',
  })
