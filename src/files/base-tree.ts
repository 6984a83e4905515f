import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { extract, type Header } from 'tar-stream'
import { isSafePath } from '../jobs/paths.ts'
import { isGzip } from './is-gzip.ts'

export interface BaseFile {
  readonly sha256: string
  readonly size: number
  readonly executable: boolean
  /** Whole seconds. */
  readonly modified: number
}

export interface BaseTree {
  readonly files: ReadonlyMap<string, BaseFile>
  /** Targets of symbolic links. */
  readonly links: ReadonlyMap<string, string>
}

/** Reads the files and links of the tar that the workspace started from. Empty without a tar. */
export const readBase = async (path: string | null): Promise<BaseTree> => {
  const files = new Map<string, BaseFile>()
  const links = new Map<string, string>()
  await eachEntry(path, async (name, header, content) => {
    if (header.type === 'symlink') links.set(name, header.linkname ?? '')
    if (header.type !== 'file') return
    const hash = createHash('sha256')
    for await (const chunk of content) hash.update(chunk)
    files.set(name, {
      sha256: hash.digest('hex'),
      size: header.size ?? 0,
      executable: ((header.mode ?? 0) & 0o111) !== 0,
      modified: Math.floor((header.mtime?.getTime() ?? 0) / 1000),
    })
  })
  return { files, links }
}

/** Reads the contents of the wanted files of that tar. */
export const readBaseContents = async (
  path: string | null,
  wanted: ReadonlySet<string>,
): Promise<Map<string, Buffer>> => {
  const contents = new Map<string, Buffer>()
  if (wanted.size === 0) return contents
  await eachEntry(path, async (name, { type }, content) => {
    if (type !== 'file' || !wanted.has(name)) return
    contents.set(name, await buffer(content))
  })
  return contents
}

const eachEntry = async (
  path: string | null,
  visit: (name: string, header: Header, content: AsyncIterable<Buffer>) => Promise<void>,
): Promise<void> => {
  if (path === null) return
  const tar = extract()
  const source: Readable = createReadStream(path)
  const filled = isGzip(path) ? pipeline(source, createGunzip(), tar) : pipeline(source, tar)
  filled.catch(() => {}) // The loop below throws the same error.
  for await (const entry of tar) {
    const name = entry.header.name.replace(/^(\.\/)+/, '')
    // Names that are not valid UTF-8 are missing from listings, too: they must not count as deleted.
    if (isSafePath(name) && !name.includes('\ufffd'))
      await visit(name, entry.header, entry as AsyncIterable<Buffer>)
    entry.resume()
  }
  await filled
}
