import { createReadStream } from 'node:fs'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { extract, pack } from 'tar-stream'
import { isGzip } from './is-gzip.ts'

export interface AddedFile {
  /** Relative to the workspace. */
  readonly path: string
  readonly size: number
  read(): AsyncIterable<Uint8Array>
}

/**
 * A workspace tar with more files below one directory. The directory belongs to these files: what the workspace has
 * there is left out, so that no link of the workspace can lead the files elsewhere.
 */
export async function* addToWorkspace(
  workspace: string | null,
  directory: string,
  files: readonly AddedFile[],
): AsyncGenerator<Uint8Array> {
  const tar = pack()
  const filling = fill(tar, workspace, directory, files)
  filling.catch(error => tar.destroy(error as Error))
  for await (const chunk of tar) yield chunk as Uint8Array
  await filling
}

type Pack = ReturnType<typeof pack>

const fill = async (
  tar: Pack,
  workspace: string | null,
  directory: string,
  files: readonly AddedFile[],
): Promise<void> => {
  if (workspace !== null) await copyEntries(tar, workspace, directory)
  for (const { path, size, read } of files)
    await writeEntry(tar, { name: path, size, mode: 0o644, mtime: new Date(0) }, read())
  tar.finalize()
}

const copyEntries = async (tar: Pack, workspace: string, directory: string): Promise<void> => {
  const entries = extract()
  const source: Readable = createReadStream(workspace)
  const read = isGzip(workspace) ? pipeline(source, createGunzip(), entries) : pipeline(source, entries)
  read.catch(() => {}) // The loop below throws the same error.
  for await (const entry of entries) {
    const name = entry.header.name.replace(/^(\.\/)+/, '').replace(/\/+$/, '')
    if (name === directory || name.startsWith(`${directory}/`)) entry.resume()
    else await writeEntry(tar, entry.header, entry as AsyncIterable<Buffer>)
  }
  await read
}

const writeEntry = async (
  tar: Pack,
  header: Parameters<Pack['entry']>[0],
  content: AsyncIterable<Uint8Array>,
): Promise<void> => {
  const entry = tar.entry(header)
  await pipeline(content, entry)
}
