import { HOME } from './text.ts'

const MAX_CALLS = 64
const MAX_ARGUMENTS = 512
const MAX_LITERALS = 32

export interface Literal {
  text: string
  /** Perl, Ruby and PHP run what stands in such quotes. */
  runs: boolean
}

const LITERAL =
  /(["'`])((?:(?!\1)[^\\]|\\.){0,512}?)\1|(?:\bqx|\bqw|\bqq?|%[xwqQ])\s*(?:\(([^)]{1,512})\)|\{([^}]{1,512})\}|\[([^\]]{1,512})\]|\/((?:[^/\\]|\\.){1,512})\/)/gs

/** The texts that stand in quotes, whatever the language calls quotes. */
export const literalsIn = (code: string): Literal[] => {
  const literals: Literal[] = []
  for (const match of code.matchAll(LITERAL)) {
    const text = match[2] ?? match[3] ?? match[4] ?? match[5] ?? match[6] ?? ''
    const words = /^(?:qw|%w)/.test(match[0]) ? text.trim().split(/\s+/) : [text]
    const runs = /^(?:`|qx|%x)/.test(match[0])
    for (const word of words) literals.push({ text: word.replace(/\\([\\/"'`])/g, '$1'), runs })
    if (literals.length >= MAX_LITERALS) break
  }
  return literals
}

/** The texts given to each call of the functions a pattern names; a name stands for the text it was set to. */
export const callsIn = (code: string, functions: RegExp): string[][] => {
  const calls: string[][] = []
  for (const match of code.matchAll(new RegExp(functions, 'g')))
    if (calls.push(argumentsAt(code, match.index + match[0].length)) >= MAX_CALLS) break
  return calls.filter(words => words.length > 0)
}

const argumentsAt = (code: string, from: number): string[] => {
  const text = code.slice(from, from + MAX_ARGUMENTS)
  const end = endOfCall(text)
  const given = withHomes(text.slice(0, end))
  const words = literalsIn(given).map(({ text: word }) => word)
  if (words.length > 0) return words
  const name = /^\s*\(?\s*(?:shell\s*=\s*\w+,\s*)?([$@]?[A-Za-z_]\w*)\s*[,);]/.exec(`${given};`)?.[1]
  return name === undefined ? [] : assigned(code, name)
}

/** The closing bracket of the call, or the end of the statement where there are no brackets. */
const endOfCall = (text: string): number => {
  let depth = 0
  let quote = ''
  for (let i = 0; i < text.length; i++) {
    const char = text[i]!
    if (char === '\\') i++
    else if (quote !== '') quote = char === quote ? '' : quote
    else if (/["'`]/.test(char)) quote = char
    else if (/[([{]/.test(char)) depth++
    else if (/[)\]}]/.test(char)) {
      if (--depth <= 0) return i + 1
    } else if (depth === 0 && /[;\n]/.test(char)) return i
  }
  return text.length
}

const withHomes = (text: string): string =>
  text.replace(
    /\b(?:Path\.home|(?:\w+\.|require\(["']\w+["']\)\.)?homedir)\(\)|(?:os\.)?environ(?:\.get)?[[(]["']HOME["'][\])]|process\.env\.HOME|\$?ENV[{[]["']?HOME["']?[}\]]|\bDir\.home\b/g,
    `"${HOME}"`,
  )

const assigned = (code: string, name: string): string[] => {
  const pattern = new RegExp(`${name.replace(/[$@]/g, '\\$&')}\\s*=\\s*(?=[\\["'\`q%])`)
  const match = pattern.exec(code)
  if (!match) return []
  const rest = code.slice(match.index + match[0].length, match.index + match[0].length + MAX_ARGUMENTS)
  const end = rest.startsWith('[') ? rest.indexOf(']') : rest.search(/[;\n]/)
  return literalsIn(end < 0 ? rest : rest.slice(0, end + 1)).map(({ text }) => text)
}
