import type { ParameterExpansionPart, ParsedScript, Word, WordPart } from 'unbash'
import { HOME, UNKNOWN } from './protected-paths.ts'
import { getVariable, markTested, type Scope } from './shell-scope.ts'

export interface Expander {
  /** The fields that a word expands to; text that only running it would show is `UNKNOWN`. */
  fields(word: Word, scope: Scope): string[]
  /** The expansion as one text, for assignments and here-documents. */
  text(parts: readonly WordPart[], scope: Scope): string
}

/** `run` interprets the script of a command substitution and returns its output. */
export const createExpander = (run: (script: ParsedScript, scope: Scope) => string): Expander => {
  const text = (parts: readonly WordPart[], scope: Scope): string =>
    parts.map(part => expand(part, scope).text).join('')

  const fields = (word: Word, scope: Scope): string[] => {
    const [first, ...rest] = word.parts ?? [literal(word)]
    const home = first?.type === 'Literal' ? expandTilde(first.value, scope) : undefined
    const pieces = rest.map(part => expand(part, scope))
    if (home !== undefined) return split([{ text: home, quoted: true }, ...pieces])
    return split(first ? [expand(first, scope), ...pieces] : [])
  }

  const expand = (part: WordPart, scope: Scope): Piece => {
    switch (part.type) {
      case 'DoubleQuoted':
      case 'LocaleString':
        return { text: text(part.parts, scope), quoted: !part.parts.some(isList) }
      case 'SimpleExpansion':
        return { text: variable(part.text.slice(1), scope), quoted: false }
      case 'ParameterExpansion':
        return { text: parameter(part, scope), quoted: false }
      case 'CommandExpansion':
      case 'ProcessSubstitution':
        return { text: part.script ? run(part.script, scope).trimEnd() : UNKNOWN, quoted: false }
      case 'ArithmeticExpansion':
        return { text: UNKNOWN, quoted: true }
      case 'ExtendedGlob':
        return { text: '*', quoted: true }
      case 'BraceExpansion':
      case 'Glob':
        return { text: part.text, quoted: true }
      default:
        return { text: part.value, quoted: true }
    }
  }

  const parameter = (part: ParameterExpansionPart, scope: Scope): string => {
    const { operation, parameter: name } = part
    if (part.prefix || (part.index && !/^[@*]$/.test(part.index.value))) return UNKNOWN
    if (!operation) return variable(name, scope)
    if (operation.type !== 'Default') return UNKNOWN
    const value = getVariable(scope, name)
    const operand = (): string => text(operation.operand.parts ?? [literal(operation.operand)], scope)
    if (operation.operator.endsWith('+')) return value ? operand() : ''
    if (!operation.operator.endsWith('?')) return value || operand()
    markTested(scope, name)
    return value || UNKNOWN
  }

  const variable = (name: string, scope: Scope): string => {
    if (name === 'HOME') return HOME
    if (name === 'PWD') return scope.cwd
    const value = getVariable(scope, name)
    if (value) return value
    // Arguments and the variables of every session have values that the text does not show.
    if (value === undefined && (!/^[A-Za-z_]\w*$/.test(name) || SET_BY_SESSION.test(name))) return UNKNOWN
    if (scope.nounset) return UNKNOWN
    scope.missing.add(name)
    return ''
  }

  return { fields, text }
}

const SET_BY_SESSION = /^(?:USER|LOGNAME|UID|PATH|SHELL|RANDOM|HOSTNAME|OLDPWD|PPID)$/

interface Piece {
  text: string
  /** The shell does not split it at white space. */
  quoted: boolean
}

/** `"${words[@]}"` and `"$@"` expand to several fields although they are quoted. */
const isList = (part: WordPart): boolean =>
  (part.type === 'ParameterExpansion' && /^[@*]$/.test(part.index?.value ?? part.parameter)) ||
  (part.type === 'SimpleExpansion' && /^\$[@*]$/.test(part.text))

const literal = ({ pos, end, value, text }: Word): WordPart => ({ type: 'Literal', pos, end, value, text })

const expandTilde = (text: string, scope: Scope): string | undefined => {
  if (!text.startsWith('~')) return undefined
  const [, user = '', rest = ''] = /^~([^/]*)(.*)$/s.exec(text) ?? []
  if (user === '+') return scope.cwd + rest
  return (user === '' ? HOME : user === 'root' ? '/root' : `/home/${user}`) + rest
}

const split = (pieces: readonly Piece[]): string[] => {
  const fields: string[] = []
  let current: string | undefined
  for (const { text, quoted } of pieces) {
    const [first = '', ...more] = quoted ? [text] : text.split(/\s+/)
    if (quoted || first !== '') current = (current ?? '') + first
    for (const piece of more) {
      if (current !== undefined) fields.push(current)
      current = piece === '' ? undefined : piece
    }
  }
  return current === undefined ? fields : [...fields, current]
}
