import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'

export interface OpenOptions {
  /** Follow a symbolic link at the end of the path: only for paths that the user named. */
  readonly follow?: boolean
}

export interface ReadOptions extends OpenOptions {
  readonly maxBytes: number
}

/**
 * Opens a regular file and nothing else. Without O_NONBLOCK, opening a FIFO without a writer blocks a thread of the
 * libuv pool forever; four of them stop all file operations of the process.
 */
export const openRegularFile = async (path: string, options: OpenOptions = {}): Promise<FileHandle> => {
  const handle = await open(path, flagsOf(options))
  try {
    if (!(await handle.stat()).isFile()) throw notRegular(path)
    return handle
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** Reads a regular file of at most `maxBytes` bytes. */
export const readRegularFile = async (path: string, options: ReadOptions): Promise<Buffer> => {
  const handle = await openRegularFile(path, options)
  try {
    return await readAtMost(handle, path, options.maxBytes)
  } finally {
    await handle.close()
  }
}

/** Streams a regular file of any size. */
export async function* streamRegularFile(path: string): AsyncGenerator<Uint8Array> {
  const handle = await openRegularFile(path)
  try {
    for await (const chunk of handle.createReadStream({ autoClose: false })) yield chunk as Buffer
  } finally {
    await handle.close()
  }
}

/** Synchronous variant of readRegularFile. */
export const readRegularFileSync = (path: string, options: ReadOptions): Buffer => {
  const fd = openSync(path, flagsOf(options))
  try {
    const info = fstatSync(fd)
    if (!info.isFile()) throw notRegular(path)
    if (info.size > options.maxBytes) throw tooLarge(path, options.maxBytes)
    const buffer = Buffer.alloc(info.size)
    return buffer.subarray(0, readSync(fd, buffer, 0, info.size, 0))
  } finally {
    closeSync(fd)
  }
}

/** Reads an open file or pipe to its end. Throws past `maxBytes`: the size that `stat` reports cannot be trusted. */
export const readAtMost = async (handle: FileHandle, path: string, maxBytes: number): Promise<Buffer> => {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of handle.createReadStream({ autoClose: false })) {
    chunks.push(chunk as Buffer)
    size += (chunk as Buffer).length
    if (size > maxBytes) throw tooLarge(path, maxBytes)
  }
  return Buffer.concat(chunks)
}

const flagsOf = ({ follow = false }: OpenOptions): number =>
  constants.O_RDONLY | constants.O_NONBLOCK | (follow ? 0 : constants.O_NOFOLLOW)

const notRegular = (path: string): Error =>
  Object.assign(new Error(`${path} is not a regular file`), { code: 'ENOTREG' })

const tooLarge = (path: string, maxBytes: number): Error =>
  Object.assign(new Error(`${path} is larger than ${maxBytes} bytes`), { code: 'EFBIG' })

/** Whether the path has no regular file at all. A regular file that cannot be read does not count. */
export const isRegularFileMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && ABSENT.includes(String(error.code))

/** ELOOP: a symbolic link that was not followed. ENXIO: a socket. */
const ABSENT = ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO', 'ENOTREG']
