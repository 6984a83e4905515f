import { readFile, stat } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import ignore, { type Ignore } from 'ignore'

/** What one .gitignore says, for paths relative to the workspace. */
export interface IgnoreRules {
  /** The part of a path that its own directory has already gone down. */
  readonly strip: number
  /** The way from its directory down to the workspace, for files above it. */
  readonly prefix: string
  readonly matcher: Ignore
}

/** The .gitignore of a directory inside the workspace, if there is one. */
export const rulesIn = async (root: string, directory: string): Promise<IgnoreRules[]> =>
  rulesFrom(join(root, directory, '.gitignore'), directory === '' ? 0 : directory.length + 1, '')

/** A workspace may be a part of a repository: then the files above it count, as they do for git. */
export const rulesAbove = async (root: string): Promise<IgnoreRules[]> => {
  const top = await repositoryOf(root)
  if (top === undefined) return []
  const rules = await rulesFrom(join(top, '.git/info/exclude'), 0, prefixOf(top, root))
  for (const directory of between(top, root))
    rules.push(...(await rulesFrom(join(directory, '.gitignore'), 0, prefixOf(directory, root))))
  return rules
}

/** The innermost .gitignore that says something about a path wins, as in git. */
export const isIgnored = (path: string, isDirectory: boolean, rules: readonly IgnoreRules[]): boolean => {
  let ignored = false
  for (const { strip, prefix, matcher } of rules) {
    const verdict = matcher.test(`${prefix}${path.slice(strip)}${isDirectory ? '/' : ''}`)
    if (verdict.ignored) ignored = true
    else if (verdict.unignored) ignored = false
  }
  return ignored
}

const rulesFrom = async (file: string, strip: number, prefix: string): Promise<IgnoreRules[]> => {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  return text === undefined ? [] : [{ strip, prefix, matcher: ignore().add(text) }]
}

const repositoryOf = async (root: string): Promise<string | undefined> => {
  for (let at = root; ; at = dirname(at)) {
    if (await stat(join(at, '.git')).catch(() => undefined)) return at
    if (dirname(at) === at) return undefined
  }
}

/** The directories from the repository down to the parent of the workspace. */
const between = (top: string, root: string): string[] => {
  const directories: string[] = []
  for (let at = root; at !== top; at = dirname(at)) directories.unshift(dirname(at))
  return directories
}

const prefixOf = (directory: string, root: string): string => {
  const way = relative(directory, root)
  return way === '' ? '' : `${way}/`
}
