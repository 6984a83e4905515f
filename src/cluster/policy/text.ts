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

export const withoutMarks = (source: string): string => source.replace(/[\uE000-\uE004]/g, '_')

/** Text as people read it in a refusal. */
export const readable = (text: string): string => {
  const plain = text
    .replaceAll(HOME, '~')
    .replaceAll(DOWNLOAD, '<download>')
    .replace(/\uE004\d+\uE004/g, '<(…)')
    .replace(/[\uE000\uE003]/g, '…')
  return plain.length > 120 ? `${plain.slice(0, 117)}…` : plain
}

export const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

/** One name for a file however it is written. */
export const fileKey = (path: string): string => path.replace(/^(?:\.\/+)+/, '')

/** Shell glob against a name, in time linear in both but for `*`, which backtracks to its last place only. */
export const globMatches = (pattern: string, name: string): boolean => {
  const tokens = globTokens(pattern)
  let p = 0
  let n = 0
  let star = -1
  let resume = 0
  while (n < name.length) {
    const token = tokens[p]
    if (token === '*') {
      star = p++
      resume = n
    } else if (token !== undefined && (token === '?' || token === name[n])) {
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

/** A bracket or an extended pattern counts as "any": the policy wants to know what a glob might reach. */
const globTokens = (pattern: string): string[] => {
  const tokens: string[] = []
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern[i]!
    if (char === '[') {
      const close = pattern.indexOf(']', i + 2)
      if (close > 0) {
        tokens.push('?')
        i = close
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

export const isGlob = (text: string): boolean => /[*?[]|[+@!]\(/.test(text)

/** The text behind `<(…)` when a word is one. */
export const processOutput = (word: string, processes: readonly string[]): string | undefined => {
  const match = /^\uE004(\d+)\uE004$/.exec(word)
  return match ? processes[Number(match[1])] : undefined
}
