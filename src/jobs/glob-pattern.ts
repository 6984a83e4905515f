/**
 * Patterns of .gitignore files and artifacts, matched without backtracking: a match costs at most the length of the
 * pattern times the length of the path. `*`, `?` and `[a-z]` match within a directory. `**` between slashes matches
 * any number of directories, and at the end everything inside. A backslash escapes the next character.
 */
export type GlobPattern = readonly Segment[]
type Segment = typeof ANY_DEPTH | readonly Token[]

/** A character code, a wildcard (STAR or ANY), or a character class. */
type Token = number | CharacterClass

interface CharacterClass {
  readonly negated: boolean
  /** Pairs of first and last character code, flattened. */
  readonly ranges: readonly number[]
}

/** Steps left for matching. Each match subtracts its cost; the caller stops below zero. */
export interface MatchBudget {
  steps: number
}

const ANY_DEPTH = '**'
const STAR = -1
const ANY = -2

/** Returns undefined for an invalid pattern: `[` without `]`, or a trailing backslash. */
export const compileGlob = (text: string): GlobPattern | undefined => {
  const segments: Segment[] = []
  let tokens: Token[] = []
  const endSegment = () => {
    const isAnyDepth = tokens.length === 2 && tokens[0] === STAR && tokens[1] === STAR
    if (!isAnyDepth) segments.push(tokens)
    else if (segments.at(-1) !== ANY_DEPTH) segments.push(ANY_DEPTH)
    tokens = []
  }
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!
    if (char === '/') endSegment()
    else if (char === '*') tokens.push(STAR)
    else if (char === '?') tokens.push(ANY)
    else if (char === '[') {
      const read = readClass(text, at + 1)
      if (read === undefined) return undefined
      tokens.push(read.token)
      at = read.end
    } else if (char === '\\') {
      at++
      if (at === text.length) return undefined
      if (text[at] === '/') endSegment()
      else tokens.push(text.charCodeAt(at))
    } else tokens.push(char.charCodeAt(0))
  }
  endSegment()
  // A trailing `**` matches what is inside the directory, not the directory itself.
  if (segments.at(-1) === ANY_DEPTH) segments.push([STAR])
  return segments
}

export const matchesGlob = (pattern: GlobPattern, path: readonly string[], budget: MatchBudget): boolean => {
  let at = 0
  let index = 0
  let afterStar = -1
  let resume = 0
  while (index < path.length) {
    const segment = pattern[at]
    if (segment === ANY_DEPTH) {
      afterStar = ++at
      resume = index
    } else if (segment !== undefined && matchesSegment(segment, path[index]!, budget)) {
      at++
      index++
    } else if (afterStar !== -1) {
      at = afterStar
      index = ++resume
    } else return false
  }
  while (pattern[at] === ANY_DEPTH) at++
  return at === pattern.length
}

/** Retries only the last star, with one more character: retrying an earlier star cannot find more matches. */
const matchesSegment = (tokens: readonly Token[], name: string, budget: MatchBudget): boolean => {
  let at = 0
  let index = 0
  let afterStar = -1
  let resume = 0
  let steps = 1
  let matches = true
  while (index < name.length) {
    steps++
    const token = tokens[at]
    if (token === STAR) {
      afterStar = ++at
      resume = index
    } else if (token !== undefined && matchesOne(token, name.charCodeAt(index))) {
      at++
      index++
    } else if (afterStar !== -1) {
      at = afterStar
      index = ++resume
    } else {
      matches = false
      break
    }
  }
  budget.steps -= steps
  while (tokens[at] === STAR) at++
  return matches && at === tokens.length
}

const matchesOne = (token: Token, code: number): boolean => {
  if (typeof token === 'number') return token === code || token === ANY
  const { ranges, negated } = token
  for (let i = 0; i < ranges.length; i += 2) if (ranges[i]! <= code && code <= ranges[i + 1]!) return !negated
  return negated
}

/** Starts after the opening bracket; `end` is the index of the closing one. */
const readClass = (text: string, start: number): { token: CharacterClass; end: number } | undefined => {
  const negated = text[start] === '!' || text[start] === '^'
  const first = negated ? start + 1 : start
  const ranges: number[] = []
  for (let at = first; at < text.length; at++) {
    if (text[at] === ']' && at > first) return { token: { negated, ranges }, end: at }
    const bracket = text[at] === '[' && text[at + 1] === ':' ? text.indexOf(']', at + 2) : -1
    if (bracket > at + 2 && text[bracket - 1] === ':') {
      const named = NAMED_CLASSES.get(text.slice(at + 2, bracket - 1))
      if (named === undefined) return undefined
      ranges.push(...named)
      at = bracket
      continue
    }
    if (text[at] === '\\') at++
    const from = text.charCodeAt(at)
    if (text[at + 1] === '-' && at + 2 < text.length && text[at + 2] !== ']') {
      at += text[at + 2] === '\\' ? 3 : 2
      ranges.push(from, text.charCodeAt(at))
    } else ranges.push(from, from)
  }
  return undefined
}

const codes = (text: string): number[] => [...text].map(char => char.charCodeAt(0))

const NAMED_CLASSES: ReadonlyMap<string, readonly number[]> = new Map([
  ['alnum', codes('09AZaz')],
  ['alpha', codes('AZaz')],
  ['blank', codes('  \t\t')],
  ['cntrl', [0, 31, 127, 127]],
  ['digit', codes('09')],
  ['graph', codes('!~')],
  ['lower', codes('az')],
  ['print', codes(' ~')],
  ['punct', codes('!/:@[`{~')],
  ['space', [9, 13, 32, 32]],
  ['upper', codes('AZ')],
  ['xdigit', codes('09AFaf')],
])
