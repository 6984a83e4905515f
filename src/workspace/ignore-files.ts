import { stat } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { isNoRegularFile, readRegularFile } from '../files/regular-file.ts'
import { AppError } from '../jobs/errors.ts'
import { type IgnoreRules, MAX_IGNORE_BYTES, parseIgnoreRules } from './gitignore.ts'

/** The repository that a workspace is in, or the workspace itself. */
export interface Surroundings {
  /** The git directory, or the file that names it; undefined outside of a repository. */
  readonly git: string | undefined
  /** From the top of the repository down to the workspace, ended by a slash; empty at the top. */
  readonly prefix: string
  /** What the files above the workspace say: they count, as they do for git. */
  readonly rules: readonly IgnoreRules[]
}

export const surroundingsOf = async (root: string): Promise<Surroundings> => {
  const top = await repositoryOf(root)
  if (top === undefined) return { git: undefined, prefix: '', rules: [] }
  const git = join(top, '.git')
  const way = relative(top, root)
  const rules = await readRules(join(git, 'info/exclude'), '', true)
  const names = way === '' ? [] : way.split('/')
  for (let depth = 0; depth < names.length; depth++)
    rules.push(...(await rulesIn(top, names.slice(0, depth).join('/'), '')))
  return { git, prefix: way === '' ? '' : `${way}/`, rules }
}

/** The .gitignore of one directory, if there is one; `prefix` leads from the top of the tree to `root`. */
export const rulesIn = (root: string, directory: string, prefix: string): Promise<IgnoreRules[]> =>
  readRules(join(root, directory, '.gitignore'), `${prefix}${directory === '' ? '' : `${directory}/`}`, false)

/** Git follows no link that is called .gitignore either. What cannot be read may name what must not be packed. */
const readRules = async (file: string, base: string, follow: boolean): Promise<IgnoreRules[]> => {
  try {
    const content = await readRegularFile(file, { maxBytes: MAX_IGNORE_BYTES, follow })
    return [parseIgnoreRules(content.toString('utf8'), base)]
  } catch (error) {
    if (isNoRegularFile(error)) return []
    throw new AppError('invalid', `The rules of what to leave out cannot be read: ${messageOf(error)}.`, {
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
