import { createHash } from 'node:crypto'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { type Extract, extract, type Pack } from 'tar-stream'
import { AppError } from '../jobs/errors.ts'

export interface TreeEntry {
  path: string
  type: 'file' | 'directory' | 'link'
  mode: number
  size: number
  /** SHA-256 of the content of a file or of the target of a link; empty for directories. */
  hash: string
  mtime: number
}

/** A tree of files to copy to a node. */
export interface TreeSource {
  entries(): Promise<TreeEntry[]>
  /** Adds the wanted entries to an archive, below `tree/`. */
  pack(into: Pack, wanted: ReadonlySet<string>): Promise<void>
}

export const TREE = 'tree'

/** A tar archive, optionally gzipped. It is opened twice: to list its entries, and to send the wanted ones. */
export const tarSource = (open: () => AsyncIterable<Uint8Array>): TreeSource => {
  const links = new Map<string, string>()
  return {
    entries: async () => {
      const listed = new Map<string, TreeEntry>()
      const read = readTar(open, async (entry, content, link) => {
        if (link !== undefined) links.set(entry.path, link)
        const hash = createHash('sha256')
        for await (const chunk of content) hash.update(chunk)
        const value = entry.type === 'file' ? hash.digest('hex') : link === undefined ? '' : digest(link)
        listed.set(entry.path, { ...entry, hash: value })
      })
      await read.catch(refuseTar)
      return [...listed.values()]
    },
    pack: (into, wanted) =>
      readTar(open, async (entry, content) => {
        if (!wanted.has(entry.path)) for await (const _ of content);
        else if (entry.type === 'file') await addFile(into, entry, content)
        else {
          for await (const _ of content);
          addHeader(into, entry, links.get(entry.path))
        }
      }),
  }
}

const refuseTar = (error: unknown): never => {
  if (error instanceof AppError) throw error
  const message = error instanceof Error ? error.message : String(error)
  throw new AppError('invalid', `The workspace of the job cannot be unpacked: ${message}.`, {
    hint: 'Send a plain or gzipped tar.',
    cause: error,
  })
}

const readTar = async (
  open: () => AsyncIterable<Uint8Array>,
  onEntry: (
    entry: Omit<TreeEntry, 'hash'>,
    content: AsyncIterable<Uint8Array>,
    link?: string,
  ) => Promise<void>,
): Promise<void> => {
  const tar = extract()
  const fed = feed(open(), tar)
  // The loop over the entries gets the same error.
  fed.catch(() => undefined)
  for await (const item of tar) {
    const { header } = item
    const path = header.name.replace(/^(?:\.\/)+/, '').replace(/\/+$/, '')
    const type =
      header.type === 'symlink'
        ? 'link'
        : header.type === 'directory'
          ? 'directory'
          : header.type === 'file'
            ? 'file'
            : undefined
    if (type === undefined || !isPortable(path)) {
      item.resume()
      continue
    }
    const entry = {
      path,
      type,
      mode: (header.mode ?? 0o644) & 0o777,
      size: type === 'file' ? (header.size ?? 0) : 0,
      mtime: header.mtime?.getTime() ?? 0,
    } as const
    await onEntry(entry, bytesOf(item), type === 'link' ? (header.linkname ?? '') : undefined)
  }
  await fed
}

const feed = async (source: AsyncIterable<Uint8Array>, tar: Extract): Promise<void> => {
  const chunks = source[Symbol.asyncIterator]()
  const start: Uint8Array[] = []
  const whole = async function* (): AsyncGenerator<Uint8Array> {
    yield* start
    yield* { [Symbol.asyncIterator]: () => chunks }
  }
  try {
    for (let length = 0; length < 2; length += start.at(-1)!.length) {
      const next = await chunks.next()
      if (next.done) break
      start.push(next.value)
    }
    const [first, second] = Buffer.concat(start)
    if (first === 0x1f && second === 0x8b) await pipeline(whole(), createGunzip(), tar)
    else await pipeline(whole(), tar)
  } catch (error) {
    tar.destroy(error instanceof Error ? error : new Error(String(error)))
    throw error
  }
}

async function* bytesOf(stream: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream) yield chunk as Uint8Array
}

const addHeader = (into: Pack, entry: Omit<TreeEntry, 'hash'>, link: string | undefined): void => {
  const common = { name: `${TREE}/${entry.path}`, mode: entry.mode, mtime: new Date(entry.mtime) }
  if (entry.type === 'directory') into.entry({ ...common, type: 'directory' })
  else into.entry({ ...common, type: 'symlink', linkname: link ?? '' })
}

const addFile = async (
  into: Pack,
  entry: Omit<TreeEntry, 'hash'>,
  content: AsyncIterable<Uint8Array>,
): Promise<void> => {
  const header = {
    name: `${TREE}/${entry.path}`,
    mode: entry.mode,
    mtime: new Date(entry.mtime),
    size: entry.size,
  }
  await pipeline(content, into.entry(header))
}

/** Whether a path can be in a tar archive and stays inside the tree. Other files are not copied. */
export const isPortable = (path: string): boolean =>
  path !== '' &&
  path.length < 4096 &&
  !path.includes('\0') &&
  path.split('/').every(part => part !== '' && part !== '.' && part !== '..')

const digest = (text: string): string => createHash('sha256').update(text).digest('hex')
