import { expandBraces } from './brace-expansion.ts'
import { compileGlob, type GlobPattern, type MatchBudget, matchesGlob } from './glob-pattern.ts'

/** Limits of one glob in a manifest: its length, and what its `{a,b}` groups may expand to. */
const MAX_LENGTH = 512
const MAX_ALTERNATIVES = 64
const MAX_EXPANDED = 4096

/** Matching steps for one list of files: about half a second. */
const MAX_STEPS = 100_000_000

/** Returns why a glob is refused, or undefined when it is valid. */
export const globProblem = (glob: string): string | undefined => {
  const read = compileAlternatives(glob)
  return typeof read === 'string' ? read : undefined
}

export interface GlobMatcher {
  matches(path: string): boolean
  /**
   * True when the step budget is spent, after which nothing matches. The paths come from machines, so they are
   * untrusted.
   */
  isExhausted(): boolean
}

/**
 * Matches artifact globs: `*` and `?` stay within a directory, `**` crosses directories, `[abc]` and `{a,b}` work. A
 * glob without a slash matches at any depth, as in .gitignore: `*.log` finds `logs/build.log`. Invalid globs match
 * nothing.
 */
export const globMatcher = (globs: readonly string[]): GlobMatcher => {
  const patterns = globs.flatMap(glob => {
    const read = compileAlternatives(glob)
    return typeof read === 'string' ? [] : read
  })
  const budget: MatchBudget = { steps: MAX_STEPS }
  return {
    matches: path => {
      const parts = path.split('/')
      return patterns.some(pattern => budget.steps > 0 && matchesGlob(pattern, parts, budget))
    },
    isExhausted: () => budget.steps <= 0,
  }
}

const compileAlternatives = (glob: string): readonly GlobPattern[] | string => {
  if (glob.length > MAX_LENGTH) return `is longer than ${MAX_LENGTH} characters`
  const expanded = expandBraces(glob, MAX_ALTERNATIVES)
  if (expanded === undefined) return `expands to more than ${MAX_ALTERNATIVES} alternatives`
  if (expanded.reduce((sum, alternative) => sum + alternative.length, 0) > MAX_EXPANDED)
    return `expands to more than ${MAX_EXPANDED} characters`
  const patterns: GlobPattern[] = []
  for (const alternative of expanded) {
    for (const glob of anchored(alternative)) {
      const pattern = compileGlob(glob)
      if (pattern === undefined) return "has a '[' without ']', or ends in a backslash"
      patterns.push(pattern)
    }
  }
  return patterns
}

const anchored = (glob: string): string[] => {
  const relative = glob.replace(/^\/work(space)?\//, '').replace(/^\.?\//, '')
  // A directory means everything in it.
  const inside = relative.endsWith('/') ? `${relative}**` : relative
  const whole = inside.includes('/') ? inside : `**/${inside}`
  // A plain name may be a directory, too. `src/*` must not match more than the files in src.
  return /[*?[\\]/.test(whole.slice(whole.lastIndexOf('/'))) ? [whole] : [whole, `${whole}/**`]
}
