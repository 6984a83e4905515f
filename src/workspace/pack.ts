import { createReadStream, type Stats } from 'node:fs'
import { lstat, readdir, readFile, readlink } from 'node:fs/promises'
import { join, posix } from 'node:path'
import ignore, { type Ignore } from 'ignore'
import { pack as tarPack } from 'tar-stream'
import { AppError } from '../jobs/errors.ts'

/**
 * A directory as a tar, in a fixed order. Leaves out `.git` and what .gitignore files say, at every level. Links
 * stay links: nothing outside the directory is ever read.
 */
export async function* packDirectory(directory: string): AsyncGenerator<Uint8Array> {
  const info = await lstat(directory).catch(() => undefined)
  if (!info?.isDirectory())
    throw new AppError('invalid', `The workspace '${directory}' is not a directory.`, {
      hint: 'Name an existing directory on the computer where the daemon runs.',
    })
  const tar = tarPack()
  const filled = fill(tar, directory).then(
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

export interface WorkspaceEntry {
  /** Relative to the workspace, with slashes. */
  readonly path: string
  readonly stats: Stats
}

/** Everything that belongs to a workspace: parents before children, names in order. */
export async function* walkWorkspace(root: string): AsyncGenerator<WorkspaceEntry> {
  yield* walk(root, '', [])
}

interface Rules {
  readonly base: string
  readonly matcher: Ignore
}

async function* walk(
  root: string,
  relative: string,
  inherited: readonly Rules[],
): AsyncGenerator<WorkspaceEntry> {
  const rules = [...inherited, ...(await rulesOf(root, relative))]
  const names = (await readdir(join(root, relative))).sort()
  for (const name of names) {
    if (name === '.git') continue
    const path = posix.join(relative, name)
    const stats = await lstat(join(root, path)).catch(() => undefined)
    if (stats === undefined || isIgnored(path, stats.isDirectory(), rules)) continue
    yield { path, stats }
    if (stats.isDirectory()) yield* walk(root, path, rules)
  }
}

const rulesOf = async (root: string, relative: string): Promise<Rules[]> => {
  const text = await readFile(join(root, relative, '.gitignore'), 'utf8').catch(() => undefined)
  return text === undefined ? [] : [{ base: relative, matcher: ignore().add(text) }]
}

/** The innermost .gitignore that says something about a path wins, as in git. */
const isIgnored = (path: string, isDirectory: boolean, rules: readonly Rules[]): boolean => {
  let ignored = false
  for (const { base, matcher } of rules) {
    const inner = base === '' ? path : path.slice(base.length + 1)
    const verdict = matcher.test(isDirectory ? `${inner}/` : inner)
    if (verdict.ignored) ignored = true
    else if (verdict.unignored) ignored = false
  }
  return ignored
}

type Tar = ReturnType<typeof tarPack>

const fill = async (tar: Tar, root: string): Promise<void> => {
  for await (const { path, stats } of walkWorkspace(root)) {
    const common = { name: path, mode: stats.mode & 0o777, mtime: stats.mtime }
    if (stats.isDirectory()) tar.entry({ ...common, type: 'directory' })
    else if (stats.isSymbolicLink())
      tar.entry({ ...common, type: 'symlink', linkname: await readlink(join(root, path)) })
    else if (stats.isFile()) await file(tar, join(root, path), { ...common, size: stats.size })
    if (tar.destroyed) return
  }
}

/** Exactly as many bytes as the header says; a file that shrinks meanwhile is an error, not a broken archive. */
const file = (
  tar: Tar,
  source: string,
  header: { name: string; size: number; mode: number; mtime: Date },
): Promise<void> =>
  new Promise((resolve, reject) => {
    const entry = tar.entry({ ...header, type: 'file' }, error => (error ? reject(error) : resolve()))
    if (header.size === 0) return void entry.end(null)
    const content = createReadStream(source, { end: header.size - 1 })
    let read = 0
    content.on('data', chunk => {
      read += chunk.length
    })
    content.once('error', reject)
    content.once('end', () => {
      if (read < header.size) reject(changed(header.name))
    })
    content.pipe(entry)
  })

const changed = (name: string): AppError =>
  new AppError('conflict', `The file '${name}' changed while the workspace was packed.`, {
    hint: 'Submit again when nothing writes to the directory.',
    retryable: true,
  })
