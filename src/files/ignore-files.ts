import { stat } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { AppError } from '../jobs/errors.ts'
import { type IgnoreRules, MAX_IGNORE_BYTES, parseIgnoreRules } from './gitignore.ts'
import { isRegularFileMissing, readRegularFile } from './regular-file.ts'

/** The repository that contains a workspace. */
export interface EnclosingRepository {
  /** The `.git` directory, or the `.git` file that points to it; undefined outside of a repository. */
  readonly git: string | undefined
  /** Path from the top of the repository to the workspace, with a trailing slash; empty at the top. */
  readonly prefix: string
  /** Rules of the .gitignore files above the workspace, which apply as in git. */
  readonly rules: readonly IgnoreRules[]
}

export const findEnclosingRepository = async (root: string): Promise<EnclosingRepository> => {
  const top = await repositoryOf(root)
  if (top === undefined) return { git: undefined, prefix: '', rules: [] }
  const git = join(top, '.git')
  const inside = relative(top, root)
  const rules = await readRules(join(git, 'info/exclude'), '', true)
  const names = inside === '' ? [] : inside.split('/')
  for (let depth = 0; depth < names.length; depth++)
    rules.push(...(await readIgnoreRules(top, names.slice(0, depth).join('/'), '')))
  return { git, prefix: inside === '' ? '' : `${inside}/`, rules }
}

/** The rules of one directory's .gitignore, if it exists; `prefix` is the path from the top of the tree to `root`. */
export const readIgnoreRules = (root: string, directory: string, prefix: string): Promise<IgnoreRules[]> =>
  readRules(join(root, directory, '.gitignore'), `${prefix}${directory === '' ? '' : `${directory}/`}`, false)

/**
 * Does not follow a symbolic link called .gitignore, as git does not. An unreadable file is an error: it may list
 * files that must not be packed.
 */
const readRules = async (file: string, base: string, follow: boolean): Promise<IgnoreRules[]> => {
  try {
    const content = await readRegularFile(file, { maxBytes: MAX_IGNORE_BYTES, follow })
    return [parseIgnoreRules(content.toString('utf8'), base)]
  } catch (error) {
    if (isRegularFileMissing(error)) return []
    throw new AppError('invalid', `Cannot read the ignore rules: ${messageOf(error)}.`, {
      hint: 'Make the file readable and shorter, or remove it.',
      cause: error,
    })
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const repositoryOf = async (root: string): Promise<string | undefined> => {
  for (let at = root; ; at = dirname(at)) {
    if (await stat(join(at, '.git')).catch(() => undefined)) return at
    if (dirname(at) === at) return undefined
  }
}
