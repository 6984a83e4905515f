/**
 * What a word may become is text with a few private characters standing for what cannot be known without
 * running it. They come from Unicode's private area and are removed from the input first.
 */
export const UNKNOWN = '\uE000'
export const HOME = '\uE001'
export const DOWNLOAD = '\uE002'
/** Divides the fields that one unquoted expansion gives. */
export const FIELD = '\uE003'
/** Encloses the number of a process substitution. */
export const PROCESS = '\uE004'
/** Follows what is printed without end. */
export const ENDLESS = '\uE005'

export const withoutMarks = (source: string): string => source.replace(/[\uE000-\uE005]/g, '_')

/** Text as people read it in a refusal. */
export const readable = (text: string): string => {
  const plain = text
    .replaceAll(HOME, '~')
    .replaceAll(DOWNLOAD, '<download>')
    .replace(/\uE004\d+\uE004/g, '<(…)')
    .replace(/[\uE000\uE003\uE005]/g, '…')
  return plain.length > 120 ? `${plain.slice(0, 117)}…` : plain
}

export const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

/** Shell glob against a name, in time linear in both but for `*`, which backtracks to its last place only. */
export const globMatches = (pattern: string, name: string): boolean => compileGlob(pattern)(name)

export const compileGlob = (pattern: string): ((name: string) => boolean) => {
  const tokens = globTokens(pattern)
  return name => matchesTokens(tokens, name)
}

const matchesTokens = (tokens: readonly Token[], name: string): boolean => {
  let p = 0
  let n = 0
  let star = -1
  let resume = 0
  while (n < name.length) {
    const token = tokens[p]
    if (token === '*') {
      star = p++
      resume = n
    } else if (token !== undefined && matchesOne(token, name[n]!)) {
      p++
      n++
    } else if (star >= 0) {
      p = star + 1
      n = ++resume
    } else return false
  }
  while (tokens[p] === '*') p++
  return p === tokens.length
}

/** One character, `?`, `*`, or a bracket. */
type Token = string | { has(char: string): boolean }

const matchesOne = (token: Token, char: string): boolean =>
  typeof token === 'string' ? token === '?' || token === char : token.has(char)

/** An extended pattern counts as "any": the policy wants to know what a glob might reach. */
const globTokens = (pattern: string): Token[] => {
  const tokens: Token[] = []
  const lastClose = pattern.lastIndexOf(']')
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern[i]!
    if (char === '[' && i < lastClose) {
      const close = pattern.indexOf(']', /[!^]/.test(pattern[i + 1] ?? '') ? i + 3 : i + 2)
      const end = pattern[close - 1] === ':' && close > 0 ? pattern.indexOf(']', close + 1) : close
      if (end > 0) {
        tokens.push(bracket(pattern.slice(i + 1, end)))
        i = end
        continue
      }
    }
    if ('?*+@!'.includes(char) && pattern[i + 1] === '(') {
      const close = pattern.indexOf(')', i)
      tokens.push('*')
      i = close < 0 ? pattern.length : close
      continue
    }
    if (char === UNKNOWN) tokens.push('*')
    else tokens.push(char)
  }
  return tokens
}

const bracket = (text: string): Token => {
  const negated = /^[!^]/.test(text)
  const body = negated ? text.slice(1) : text
  // A class such as [:alpha:], or what is not known, may be anything.
  if (/\[[:.=]/.test(body) || body.includes(UNKNOWN)) return '?'
  return { has: char => inBracket(body, char) !== negated }
}

const inBracket = (body: string, char: string): boolean => {
  for (let i = 0; i < body.length; i++) {
    if (body[i + 1] === '-' && i + 2 < body.length) {
      if (char >= body[i]! && char <= body[i + 2]!) return true
      i += 2
    } else if (body[i] === char) return true
  }
  return false
}

export const isGlob = (text: string): boolean => /[*?[]|[+@!]\(/.test(text)

/** The text behind `<(…)` when a word is one. */
export const processOutput = (word: string, processes: readonly string[]): string | undefined =>
  processes[processNumber(word) ?? -1]

export const processNumber = (word: string): number | undefined => {
  const match = /^\uE004(\d+)\uE004$/.exec(word)
  return match ? Number(match[1]) : undefined
}
