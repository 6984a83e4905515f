import type { ParameterExpansionPart, ParsedScript, SyntaxNode, Word, WordPart } from 'unbash'
import { parse } from 'unbash'
import { applyOperation } from './operations.ts'
import type { Scope } from './scope.ts'
import { FIELD, HOME, PROCESS, UNKNOWN } from './text.ts'

/** Runs a script for its output; the interpreter provides it. */
export type Substitute = (
  script: ParsedScript | undefined,
  scope: Scope,
  kind: 'command' | 'process' | 'consumer',
) => string

const MAX_ALTERNATIVES = 8
const MAX_FIELDS = 256
const MAX_TEXT = 65_536

export interface Expander {
  /** Every list of fields the word may become. */
  fields(word: Word, scope: Scope): string[][]
  /** Every text the word may become where the shell does not split: assignments, redirects, here-documents. */
  texts(word: Word, scope: Scope): string[]
  partTexts(parts: readonly WordPart[], scope: Scope): string[]
}

interface Draft {
  words: string[]
  quoted: boolean
}

export interface ExpanderHost {
  substitute: Substitute
  /** Meets the commands that stand inside an arithmetic expression. */
  enter(expression: SyntaxNode, scope: Scope): void
  /** Is told how much text was made, and may end it. */
  spend(length: number): void
}

export const createExpander = ({ substitute, enter, spend }: ExpanderHost): Expander => {
  const fields = (word: Word, scope: Scope): string[][] => {
    if (word.parts) return combine(word.parts, scope, false).map(finish)
    // Nearly every word is plain, and means the same wherever it stands.
    const value = tilde(word.text, word.value)
    return value === '' && word.text === '' ? [[]] : [[value]]
  }

  const texts = (word: Word, scope: Scope): string[] =>
    drafts(word, scope).map(draft => draft.words.join(' ').replaceAll(FIELD, ' '))

  const partTexts = (parts: readonly WordPart[], scope: Scope): string[] =>
    combine(parts, scope, true).map(draft => draft.words.join(' ').replaceAll(FIELD, ' '))

  const drafts = (word: Word, scope: Scope): Draft[] => {
    if (word.parts) return combine(word.parts, scope, false)
    const quoted = word.text !== word.value && /["'\\]/.test(word.text)
    return [{ words: [tilde(word.text, word.value)], quoted }]
  }

  const combine = (parts: readonly WordPart[], scope: Scope, inQuotes: boolean): Draft[] => {
    let result: Draft[] = [{ words: [''], quoted: inQuotes }]
    for (const [index, part] of parts.entries()) {
      const quoted = isQuoted(part)
      const options =
        part.type === 'BraceExpansion' ? undefined : partOptions(part, scope, inQuotes, index === 0)
      if (options === undefined) {
        const braces = expandBraces(part.text).flatMap(option => reparse(option, scope))
        result = result.map(draft => ({
          words: draft.words.flatMap(word => braces.map(brace => clip(word + brace))).slice(0, MAX_FIELDS),
          quoted: draft.quoted,
        }))
      } else {
        result = result
          .flatMap(draft =>
            options.map(option => ({
              words: draft.words.map(word => clip(word + option)),
              quoted: draft.quoted || quoted,
            })),
          )
          .slice(0, MAX_ALTERNATIVES)
      }
    }
    spend(result.reduce((sum, draft) => sum + draft.words.length * ((draft.words[0]?.length ?? 0) + 1), 0))
    return result
  }

  const partOptions = (part: WordPart, scope: Scope, inQuotes: boolean, first: boolean): string[] => {
    switch (part.type) {
      case 'Literal':
        return [first && !inQuotes ? tilde(part.text, part.value) : part.value]
      case 'SingleQuoted':
      case 'AnsiCQuoted':
        return [part.value]
      case 'DoubleQuoted':
      case 'LocaleString':
        return combine(part.parts, scope, true).map(draft => draft.words.join(' '))
      case 'SimpleExpansion':
        return split(scope.lookup(part.text.slice(1)), scope, inQuotes)
      case 'ParameterExpansion':
        return split(parameter(part, scope), scope, inQuotes)
      case 'CommandExpansion':
        return split([substitute(part.script, scope, 'command').replace(/\n+$/, '')], scope, inQuotes)
      case 'ProcessSubstitution':
        return [
          `${PROCESS}${substitute(part.script, scope, part.operator === '>' ? 'consumer' : 'process')}${PROCESS}`,
        ]
      case 'ArithmeticExpansion':
        if (part.expression) enter(part.expression, scope)
        return [/^\$\(\(\s*\d+\s*\)\)$/.test(part.text) ? part.text.replace(/\D/g, '') : UNKNOWN]
      case 'Glob':
      case 'ExtendedGlob':
      case 'BraceExpansion':
        return [part.text]
    }
  }

  const parameter = (part: ParameterExpansionPart, scope: Scope): string[] => {
    if (part.prefix === '#') return ['1']
    const index = part.index ? (texts(part.index, scope)[0] ?? '') : undefined
    const optional = part.operation?.type === 'Default'
    const named = optional ? scope.lookupOptional(part.parameter, index) : scope.lookup(part.parameter, index)
    const values = part.prefix === '!' ? named.flatMap(name => scope.lookup(name)) : named
    if (!part.operation) return values
    return applyOperation(part, values, { scope, texts: word => texts(word, scope) }).slice(
      0,
      MAX_ALTERNATIVES,
    )
  }

  const reparse = (option: string, scope: Scope): string[] => {
    if (!/[{$'"\\`~]/.test(option)) return [option]
    const statement = parse(`x ${option}`).commands[0]?.command
    const word = statement?.type === 'Command' ? statement.args[0] : undefined
    return word?.type === 'Word' ? drafts(word, scope).flatMap(draft => draft.words) : [option]
  }

  return { fields, texts, partTexts }
}

const isQuoted = (part: WordPart): boolean =>
  ['SingleQuoted', 'DoubleQuoted', 'AnsiCQuoted', 'LocaleString'].includes(part.type)

const tilde = (text: string, value: string): string => {
  if (!text.startsWith('~')) return value
  const slash = value.indexOf('/')
  const user = slash < 0 ? value : value.slice(0, slash)
  return `${homeOf(user.slice(1))}${slash < 0 ? '' : value.slice(slash)}`
}

/** `~+`, `~-` and `~2` are directories of the shell's, not people. */
const homeOf = (user: string): string => {
  if (user === '') return HOME
  if (user === 'root') return '/root'
  return /^[a-z_]/i.test(user) ? `/home/${user}` : UNKNOWN
}

const split = (values: readonly string[], scope: Scope, inQuotes: boolean): string[] => {
  const some = values.slice(0, MAX_ALTERNATIVES)
  return inQuotes ? some : some.map(value => value.replace(scope.separators(), FIELD))
}

const finish = (draft: Draft): string[] => {
  const [only] = draft.words
  if (draft.words.length === 1 && only !== undefined && !only.includes(FIELD))
    return only === '' && !draft.quoted ? [] : [only]
  const all = draft.words.flatMap(word => word.split(FIELD))
  return (draft.quoted ? all : all.filter(field => field !== '')).slice(0, MAX_FIELDS)
}

const clip = (text: string): string => (text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) : text)

/** `{a,b}` and `{1..3}`, one level; nested braces are met again when an option is read. */
const expandBraces = (text: string): string[] => {
  const body = text.slice(1, -1)
  const range = /^(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.-?\d+)?$/.exec(body)
  if (range) return [range[1]!, range[2]!]
  const options: string[] = []
  let depth = 0
  let start = 0
  for (let i = 0; i < body.length; i++) {
    const char = body[i]
    if (char === '\\') i++
    else if (char === '{') depth++
    else if (char === '}') depth--
    else if (char === ',' && depth === 0) {
      options.push(body.slice(start, i))
      start = i + 1
    }
  }
  options.push(body.slice(start))
  return options.slice(0, 64)
}
