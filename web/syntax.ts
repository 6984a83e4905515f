/**
 * Syntax colours, one line at a time: comments, strings, numbers and keywords. Enough to read a change by; a
 * comment or string over several lines is coloured in its first line only.
 */
export type Language = 'c' | 'shell' | 'python' | 'data' | 'plain'

const LANGUAGES: readonly (readonly [RegExp, Language])[] = [
  [/\.(m?[jt]sx?|cjs|cts|mts|c|h|cc|cpp|hpp|java|go|rs|kt|swift|cs|php|css|scss|proto)$/, 'c'],
  [
    /(\.(sh|bash|zsh|mk|Dockerfile|toml|tf|conf|ini)|(^|\/)(Dockerfile|Makefile|\.gitignore|\.env))$/,
    'shell',
  ],
  [/\.(py|rb|pl|r|jl|ex|exs)$/, 'python'],
  [/\.(json|jsonc|ya?ml)$/, 'data'],
]

export const languageOf = (path: string): Language =>
  LANGUAGES.find(([pattern]) => pattern.test(path))?.[1] ?? 'plain'

const KEYWORDS: Readonly<Record<Language, string>> = {
  c: 'abstract as async await break case catch class const continue default defer delete do else enum export extends extern final fn for from func function if implements impl import in interface let loop match mod move mut namespace new of package private protected pub public range readonly return select static struct super switch throw throws trait try type typeof union unsafe use using var void where while with yield true false null nil none undefined this self',
  shell:
    'if then else elif fi for in do done while until case esac function return exit export local readonly set source echo cd trap FROM RUN COPY ENV ARG CMD ENTRYPOINT WORKDIR USER',
  python:
    'and as assert async await begin break class continue def del do elif else elsif end ensure except finally for from global if import in is lambda let local module my nonlocal not or pass puts raise require rescue return sub then try unless until use while with yield True False None true false nil self',
  data: 'true false null yes no on off',
  plain: '',
}

const COMMENT: Readonly<Record<Language, string>> = {
  c: '\\/\\/.*|\\/\\*.*?(?:\\*\\/|$)|^\\s*\\*(?:\\s.*|\\/)?$',
  shell: '(?:^|(?<=\\s))#.*',
  python: '(?:^|(?<=\\s))#.*',
  data: '(?:^|(?<=\\s))(?:#|\\/\\/).*',
  plain: '(?!)',
}

const STRING = '"(?:[^"\\\\]|\\\\.)*"?|\'(?:[^\'\\\\]|\\\\.)*\'?|`(?:[^`\\\\]|\\\\.)*`?'
const NUMBER = '\\b(?:0x[\\da-fA-F]+|\\d[\\d_]*(?:\\.\\d+)?)\\b'
const WORD = '[A-Za-z_$][\\w$]*'

const patterns = new Map<Language, { readonly pattern: RegExp; readonly keywords: ReadonlySet<string> }>()

const rulesOf = (language: Language) => {
  const known = patterns.get(language) ?? {
    pattern: new RegExp(`(${COMMENT[language]})|(${STRING})|(${NUMBER})|(${WORD})`, 'g'),
    keywords: new Set(KEYWORDS[language].split(' ')),
  }
  patterns.set(language, known)
  return known
}

export interface Token {
  readonly kind: 'comment' | 'string' | 'number' | 'keyword' | undefined
  readonly text: string
}

/** Longer lines are minified code, where colours help nobody. */
const MAX_LINE = 2000

export const tokens = (line: string, language: Language): Token[] => {
  if (language === 'plain' || line.length > MAX_LINE) return [{ kind: undefined, text: line }]
  const { pattern, keywords } = rulesOf(language)
  const found: Token[] = []
  let at = 0
  for (const match of line.matchAll(pattern)) {
    const [text, comment, string, number] = match
    const kind = comment
      ? 'comment'
      : string
        ? 'string'
        : number
          ? 'number'
          : keywords.has(text)
            ? 'keyword'
            : undefined
    if (kind === undefined) continue
    if (match.index > at) found.push({ kind: undefined, text: line.slice(at, match.index) })
    found.push({ kind, text })
    at = match.index + text.length
  }
  if (at < line.length || found.length === 0) found.push({ kind: undefined, text: line.slice(at) })
  return found
}
