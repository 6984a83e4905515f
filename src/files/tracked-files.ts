import { dirname, join, resolve } from 'node:path'
import { pathsInIndex } from './git-index.ts'
import { readRegularFile } from './regular-file.ts'

/** Enough for an index of a million files. */
const MAX_INDEX_BYTES = 256 * 1024 * 1024

/**
 * The files that git tracks below `prefix`, and their directories, relative to `prefix`. Empty when there is no valid
 * index: then only .gitignore files decide.
 */
export const trackedFiles = async (git: string, prefix: string): Promise<ReadonlySet<string>> => {
  const paths = new Set<string>()
  const index = await readIndex(git).catch(() => undefined)
  for (const path of (index && pathsInIndex(index)) ?? []) {
    if (!path.startsWith(prefix)) continue
    const file = path.slice(prefix.length)
    paths.add(file)
    for (let at = file.lastIndexOf('/'); at > 0; at = file.lastIndexOf('/', at - 1)) {
      if (paths.has(file.slice(0, at))) break
      paths.add(file.slice(0, at))
    }
  }
  return paths
}

const readIndex = async (git: string): Promise<Buffer> => {
  const options = { maxBytes: MAX_INDEX_BYTES }
  // In a worktree or submodule, .git is a file with the path of the directory.
  const pointer = await readRegularFile(git, { maxBytes: 4096 }).catch(() => undefined)
  const named = pointer && /^gitdir: (.+?)\r?\n?$/s.exec(pointer.toString('utf8'))?.[1]
  return readRegularFile(join(named ? resolve(dirname(git), named) : git, 'index'), options)
}
