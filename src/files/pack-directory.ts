import { lstat, readlink } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { pack as tarPack } from 'tar-stream'
import { AppError } from '../jobs/errors.ts'
import { openRegularFile } from './regular-file.ts'
import { type WorkspaceEntry, walkWorkspace } from './walk-workspace.ts'

/**
 * Packs a directory as a tar, in a fixed order. Leaves out `.git` and ignored files at every level. Symbolic links
 * stay links, so nothing outside the directory is read.
 */
export async function* packDirectory(directory: string): AsyncGenerator<Uint8Array> {
  const info = await lstat(directory).catch(() => undefined)
  if (!info?.isDirectory())
    throw new AppError('invalid', `The workspace '${directory}' is not a directory.`, {
      hint: 'Use an existing directory on the computer where the daemon runs.',
    })
  yield* packEntries(directory, walkWorkspace(directory))
}

/** Packs these files and directories below a root; in the archive they are below `name`. */
export async function* packEntries(
  root: string,
  entries: AsyncIterable<WorkspaceEntry>,
  name = '',
): AsyncGenerator<Uint8Array> {
  const tar = tarPack()
  const filled = fill(tar, root, entries, name).then(
    () => tar.finalize(),
    (error: unknown) => tar.destroy(error instanceof Error ? error : new Error(String(error))),
  )
  try {
    for await (const chunk of tar) yield chunk as Uint8Array
    await filled
  } finally {
    tar.destroy()
  }
}

type Tar = ReturnType<typeof tarPack>

const fill = async (
  tar: Tar,
  root: string,
  entries: AsyncIterable<WorkspaceEntry>,
  name: string,
): Promise<void> => {
  for await (const { path, stats } of entries) {
    const common = { name: posix.join(name, path), mode: stats.mode & 0o777, mtime: stats.mtime }
    if (stats.isDirectory()) tar.entry({ ...common, type: 'directory' })
    else if (stats.isSymbolicLink())
      tar.entry({ ...common, type: 'symlink', linkname: await readlink(join(root, path)) })
    else if (stats.isFile()) await file(tar, join(root, path), { ...common, size: stats.size })
    if (tar.destroyed) return
  }
}

/** Writes exactly as many bytes as the header says; a file that shrinks is an error, not a broken archive. */
const file = async (
  tar: Tar,
  source: string,
  header: { name: string; size: number; mode: number; mtime: Date },
): Promise<void> => {
  // Since the listing, the file may have been replaced by a symbolic link or a FIFO.
  const handle = await openRegularFile(source).catch(error => {
    throw unreadable(header.name, error)
  })
  await new Promise<void>((resolve, reject) => {
    const entry = tar.entry({ ...header, type: 'file' }, error => (error ? reject(error) : resolve()))
    if (header.size === 0) return void entry.end(null)
    const content = handle.createReadStream({ end: header.size - 1, autoClose: false })
    let read = 0
    content.on('data', chunk => {
      read += chunk.length
    })
    content.once('error', error => reject(unreadable(header.name, error)))
    content.once('end', () => {
      if (read < header.size) reject(changed(header.name))
    })
    content.pipe(entry)
  }).finally(() => handle.close())
}

const changed = (name: string): AppError =>
  new AppError('conflict', `The file '${name}' changed while the workspace was packed.`, {
    hint: 'Submit again when nothing writes to the directory.',
    retryable: true,
  })

const unreadable = (name: string, cause: Error): AppError =>
  new AppError('invalid', `Cannot read the workspace file '${name}': ${cause.message}.`, {
    hint: 'Make it readable, or add it to .gitignore.',
    cause,
  })
