import type { ParameterExpansionPart, Word } from 'unbash'
import type { Scope } from './scope.ts'
import { compileGlob, HOME, isGlob, UNKNOWN } from './text.ts'

interface Tools {
  scope: Scope
  texts(word: Word): string[]
}

/** `${name<operation>}` on every value the name may have. */
export const applyOperation = (part: ParameterExpansionPart, values: string[], tools: Tools): string[] => {
  const operation = part.operation
  switch (operation?.type) {
    case 'Default':
      return withDefault(
        operation.operator,
        part.parameter,
        values,
        () => tools.texts(operation.operand),
        tools.scope,
      )
    case 'Remove': {
      const pattern = tools.texts(operation.operand)[0] ?? ''
      return values.map(value => removeFrom(value, operation.operator, pattern))
    }
    case 'Replace': {
      const pattern = tools.texts(operation.pattern)[0] ?? ''
      const replacement = tools.texts(operation.replacement)[0] ?? ''
      return values.map(value => replace(value, operation.operator, pattern, replacement))
    }
    case 'Slice':
      return values.map(value => slice(value, operation.offset.value, operation.length?.value))
    case 'CaseModification':
      return values.map(value =>
        operation.operator.startsWith('^') ? value.toUpperCase() : value.toLowerCase(),
      )
    case 'Transform':
      return values.map(value => transformed(value, operation.operand.value))
    default:
      return [UNKNOWN]
  }
}

const withDefault = (
  operator: string,
  name: string,
  values: string[],
  operand: () => string[],
  scope: Scope,
): string[] => {
  const set = values.filter(value => value !== '')
  const empty = set.length < values.length
  if (operator.includes('?')) {
    // The script ends here when it is empty.
    if (operator === ':?') scope.sure.set(name, true)
    return set.length > 0 ? set : [UNKNOWN]
  }
  if (operator.includes('+')) return set.length > 0 ? operand() : ['']
  const result = empty ? [...set, ...operand()] : set
  if (empty && operator.includes('=')) scope.assign(name, result)
  return result
}

const transformed = (value: string, operator: string): string => {
  if (operator === 'L') return value.toLowerCase()
  return operator === 'U' ? value.toUpperCase() : value
}

/** No path is longer that anybody removes a piece of by a pattern. */
const MAX_REMOVED = 256

type RemoveOperator = '#' | '##' | '%' | '%%'

/** A directory that is not known still begins with a slash, which is what some spellings cut out of it. */
const removeFrom = (value: string, operator: RemoveOperator, pattern: string): string => {
  if (value === UNKNOWN) return remove('/srv/some/directory', operator, pattern) === '/' ? '/' : UNKNOWN
  if (value !== HOME) return remove(value, operator, pattern)
  const rest = remove('/home/somebody', operator, pattern)
  return ['', '/', '/home'].includes(rest) ? rest : HOME
}

const remove = (value: string, operator: RemoveOperator, pattern: string): string => {
  const matches = compileGlob(pattern)
  const lengths = Array.from({ length: Math.min(value.length, MAX_REMOVED) + 1 }, (_, length) => length)
  if (operator.length === 2) lengths.reverse()
  for (const length of lengths) {
    const front = operator.startsWith('#')
    const piece = front ? value.slice(0, length) : value.slice(value.length - length)
    if (matches(piece)) return front ? value.slice(length) : value.slice(0, value.length - length)
  }
  return value
}

const replace = (value: string, operator: string, pattern: string, replacement: string): string => {
  if (pattern === '' || isGlob(pattern)) return isGlob(pattern) && replacement === '' ? '' : value
  if (operator === '//') return value.split(pattern).slice(0, 1024).join(replacement)
  if (operator === '/#') return value.startsWith(pattern) ? replacement + value.slice(pattern.length) : value
  if (operator === '/%')
    return value.endsWith(pattern) ? value.slice(0, -pattern.length) + replacement : value
  const at = value.indexOf(pattern)
  return at < 0 ? value : value.slice(0, at) + replacement + value.slice(at + pattern.length)
}

/** The first character of a home or of the working directory is the slash some people spell `${HOME:0:1}`. */
const slice = (value: string, offset: string, length: string | undefined): string => {
  const from = Number(offset)
  const count = length === undefined ? undefined : Number(length)
  if (!Number.isInteger(from) || (count !== undefined && !Number.isInteger(count))) return UNKNOWN
  if ((value === HOME || value === UNKNOWN) && from === 0 && count === 1) return '/'
  if (value.includes(UNKNOWN) || value.includes(HOME)) return UNKNOWN
  const start = from < 0 ? Math.max(0, value.length + from) : from
  const end = count === undefined ? undefined : count < 0 ? value.length + count : start + count
  return value.slice(start, end)
}
