import { lstat, readdir, realpath, stat } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { AppError } from '../jobs/errors.ts'
import { packEntries } from './pack-directory.ts'
import type { WorkspaceEntry } from './walk-workspace.ts'

/**
 * One file, or a directory with everything in it, to be packed under another name. The user named it, so .gitignore
 * does not count; `.git` is left out at every level.
 */
export const openPath = async (path: string): Promise<(name: string) => AsyncGenerator<Uint8Array>> => {
  const real = await realpath(path).catch(() => path)
  const stats = await stat(real).catch(() => undefined)
  if (!stats?.isDirectory() && !stats?.isFile())
    throw new AppError('not_found', `'${path}' is neither a file nor a directory of this computer.`)
  return name => packEntries(real, walkEverything(real, { path: '', stats }), name)
}

async function* walkEverything(root: string, entry: WorkspaceEntry): AsyncGenerator<WorkspaceEntry> {
  yield entry
  if (!entry.stats.isDirectory()) return
  for (const name of (await readdir(join(root, entry.path))).sort()) {
    if (name === '.git') continue
    const path = posix.join(entry.path, name)
    const stats = await lstat(join(root, path)).catch(() => undefined)
    if (stats !== undefined) yield* walkEverything(root, { path, stats })
  }
}
