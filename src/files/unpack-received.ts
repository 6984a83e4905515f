import { createReadStream } from 'node:fs'
import { lstat, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { extract } from 'tar-stream'
import { AppError } from '../jobs/errors.ts'
import { isGitInternal } from '../jobs/paths.ts'
import { placeBelow } from './place-below.ts'

interface UnpackOptions {
  /** The file to write, or the directory to write below. */
  readonly target: string
  readonly isDirectory: boolean
  /** Replace existing files. */
  readonly force: boolean
}

export interface Unpacked {
  readonly files: number
  readonly bytes: number
  /** What was left out: links, devices and git's own files. */
  readonly skipped: readonly string[]
}

/** Writes the files of a tar that a machine sent. The machine is not trusted. */
export const unpackReceived = async (
  source: AsyncIterable<Uint8Array>,
  { target, isDirectory, force }: UnpackOptions,
): Promise<Unpacked> => {
  if (isDirectory) await mkdir(target, { recursive: true })
  const tar = extract()
  // Read from now on: an entry that nobody waits for is lost.
  const filled = pipeline(source, tar)
  filled.catch(() => {}) // The loop below throws the same error.
  const skipped: string[] = []
  const written = new Set<string>()
  let files = 0
  let bytes = 0
  try {
    for await (const entry of tar) {
      const { type, mode = 0, linkname } = entry.header
      const path = plain(entry.header.name)
      if (isDirectory && path !== '' && isGitInternal(path)) skipped.push(path)
      else if (type === 'file') {
        const place = isDirectory ? await placeBelow(target, path) : target
        if (!force && (await lstat(place).catch(() => undefined))) throw alreadyThere(place)
        bytes += await write(place, (mode & 0o100) === 0 ? 0o666 : 0o777, entry as AsyncIterable<Uint8Array>)
        written.add(path)
        files++
      } else if (type === 'directory') {
        if (path !== '' && path !== '.') await mkdir(await placeBelow(target, path), { recursive: true })
      } else if (type === 'link' && written.has(plain(linkname ?? ''))) {
        // Another name of a file that this tar has.
        const place = await placeBelow(target, path)
        if (!force && (await lstat(place).catch(() => undefined))) throw alreadyThere(place)
        const original = join(target, plain(linkname ?? ''))
        await write(place, (mode & 0o100) === 0 ? 0o666 : 0o777, createReadStream(original))
        files++
      } else if (type !== 'fifo') skipped.push(path)
      entry.resume()
    }
    await filled
    return { files, bytes, skipped }
  } finally {
    tar.destroy()
  }
}

const plain = (name: string): string => name.replace(/^(\.\/)+/, '').replace(/\/+$/, '')

/** Through a temporary file: an incomplete copy never has the name of a complete one. */
const write = async (target: string, mode: number, content: AsyncIterable<Uint8Array>): Promise<number> => {
  await mkdir(dirname(target), { recursive: true })
  const temporary = `${target}.deputy-${process.pid}`
  const file = await open(temporary, 'wx', mode)
  let bytes = 0
  try {
    for await (const chunk of content) {
      await file.writeFile(chunk)
      bytes += chunk.length
    }
    await file.close()
    await rename(temporary, target)
    return bytes
  } catch (error) {
    // The first error is the one to report.
    await file.close().catch(() => {})
    await rm(temporary, { force: true })
    throw error
  }
}

const alreadyThere = (path: string): AppError =>
  new AppError('conflict', `${path} already exists.`, {
    hint: 'Overwrite it with --force, or choose another name.',
  })
