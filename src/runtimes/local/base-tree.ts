import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { extract } from 'tar-stream'
import { isGzip } from './gzip.ts'
import { isSafePath } from './listing.ts'

export interface BaseFile {
  readonly sha256: string
  readonly size: number
  readonly executable: boolean
  /** Whole seconds. */
  readonly modified: number
}

/** The regular files of the tar a workspace began as. */
export const readBase = async (path: string): Promise<Map<string, BaseFile>> => {
  const files = new Map<string, BaseFile>()
  await eachFile(path, async (name, header, content) => {
    const hash = createHash('sha256')
    for await (const chunk of content) hash.update(chunk)
    files.set(name, { sha256: hash.digest('hex'), ...header })
  })
  return files
}

/** The contents of some of them. */
export const readBaseContents = async (
  path: string,
  wanted: ReadonlySet<string>,
): Promise<Map<string, Buffer>> => {
  const contents = new Map<string, Buffer>()
  await eachFile(path, async (name, _header, content) => {
    const parts: Buffer[] = []
    for await (const chunk of content) if (wanted.has(name)) parts.push(chunk)
    if (wanted.has(name)) contents.set(name, Buffer.concat(parts))
  })
  return contents
}

const eachFile = async (
  path: string,
  visit: (name: string, header: Omit<BaseFile, 'sha256'>, content: AsyncIterable<Buffer>) => Promise<void>,
): Promise<void> => {
  const tar = extract()
  const source: Readable = createReadStream(path)
  const filled = isGzip(path) ? pipeline(source, createGunzip(), tar) : pipeline(source, tar)
  filled.catch(() => {}) // The loop below meets the same error.
  for await (const entry of tar) {
    const { header } = entry
    const name = header.name.replace(/^(\.\/)+/, '')
    if (header.type !== 'file' || !isSafePath(name)) {
      entry.resume()
      continue
    }
    const about = {
      size: header.size ?? 0,
      executable: ((header.mode ?? 0) & 0o111) !== 0,
      modified: Math.floor((header.mtime?.getTime() ?? 0) / 1000),
    }
    await visit(name, about, entry as AsyncIterable<Buffer>)
  }
  await filled
}
