import { AppError } from '../jobs/errors.ts'
import { compileGlob, type GlobPattern, type MatchBudget, matchesGlob } from '../jobs/glob-pattern.ts'

/** The rules of one .gitignore file. */
export interface IgnoreRules {
  /** Directory of the file with a trailing slash; empty at the top of the tree. */
  readonly base: string
  readonly patterns: readonly IgnorePattern[]
}

interface IgnorePattern {
  readonly negated: boolean
  readonly onlyDirectories: boolean
  /** Compared with the last part of a path only. */
  readonly onlyName: boolean
  readonly glob: GlobPattern
}

/** A larger file is an error. */
export const MAX_IGNORE_BYTES = 256 * 1024

/** Matching steps for one tree: a few seconds. The rules come from untrusted repositories and jobs. */
export const ignoreBudget = (): MatchBudget => ({ steps: 2_000_000_000 })

export const parseIgnoreRules = (text: string, base: string): IgnoreRules => ({
  base,
  patterns: text
    .replace(/^\ufeff/, '')
    .split('\n')
    .flatMap(parseLine),
})

/** The last matching pattern of the innermost file decides, as in git. `path` is relative to the top of the tree. */
export const isIgnored = (
  path: string,
  isDirectory: boolean,
  rules: readonly IgnoreRules[],
  budget: MatchBudget,
): boolean => {
  if (budget.steps < 0)
    throw new AppError('too_large', 'The rules of the .gitignore files take too long to match.', {
      hint: 'Use fewer or simpler rules.',
    })
  const name = [path.slice(path.lastIndexOf('/') + 1)]
  for (let file = rules.length - 1; file >= 0; file--) {
    const { base, patterns } = rules[file]!
    if (!path.startsWith(base)) continue
    let parts: string[] | undefined
    for (let line = patterns.length - 1; line >= 0; line--) {
      const { onlyDirectories, onlyName, glob, negated } = patterns[line]!
      if (onlyDirectories && !isDirectory) continue
      if (!onlyName) parts ??= path.slice(base.length).split('/')
      if (matchesGlob(glob, onlyName ? name : parts!, budget)) return !negated
    }
  }
  return false
}

const parseLine = (raw: string): IgnorePattern[] => {
  const line = withoutTrailingSpaces(raw.endsWith('\r') ? raw.slice(0, -1) : raw)
  if (line === '' || line.startsWith('#')) return []
  const negated = line.startsWith('!')
  const plain = negated ? line.slice(1) : line
  const onlyDirectories = plain.endsWith('/')
  const pattern = onlyDirectories ? plain.slice(0, -1) : plain
  const onlyName = !pattern.includes('/')
  const glob = pattern === '' ? undefined : compileGlob(pattern.startsWith('/') ? pattern.slice(1) : pattern)
  if (glob === undefined) return []
  return [{ negated, onlyDirectories, onlyName, glob }]
}

/** A backslash keeps the space that follows it. */
const withoutTrailingSpaces = (line: string): string => {
  let end = 0
  for (let at = 0; at < line.length; at++) {
    if (line[at] === '\\') end = Math.min(at++ + 2, line.length)
    else if (line[at] !== ' ') end = at + 1
  }
  return line.slice(0, end)
}
