import { AppError } from '../../../../jobs/errors.ts'
import type { Json } from './fields.ts'

export type Row = Readonly<Record<string, Json>>

/**
 * Parses `status=running name~web mem_gib>8`. A row must match all terms. A bare word matches any column.
 * A term for an unknown column is an error: an empty answer would look like a correct one.
 */
export const parseFilter = (filter: string, columns: readonly string[]): ((row: Row) => boolean) => {
  const terms = filter.split(/[\s,]+/).filter(Boolean)
  const tests = terms.map(term => parseTerm(term, columns))
  return row => tests.every(test => test(row))
}

const TERM = /^([A-Za-z0-9_.-]+)(!=|>=|<=|=|~|>|<)(.*)$/

const parseTerm = (term: string, columns: readonly string[]): ((row: Row) => boolean) => {
  const match = TERM.exec(term)
  if (!match) {
    const word = term.toLowerCase()
    return row => Object.values(row).some(value => lower(value).includes(word))
  }
  const [, column = '', operator = '', wanted = ''] = match
  if (!columns.includes(column)) {
    throw new AppError('invalid', `No column '${column}' for the filter '${term}'.`, {
      hint: `Columns: ${columns.join(', ')}.`,
    })
  }
  return row => compare(row[column] ?? null, operator, wanted)
}

const compare = (value: Json, operator: string, wanted: string): boolean => {
  if (operator === '~') return lower(value).includes(wanted.toLowerCase())
  if (operator === '=') return lower(value) === wanted.toLowerCase()
  if (operator === '!=') return lower(value) !== wanted.toLowerCase()
  if (value === null) return false
  const order = Number(value) - Number(wanted)
  const difference = Number.isNaN(order) ? String(value).localeCompare(wanted) : order
  if (operator === '>') return difference > 0
  if (operator === '<') return difference < 0
  return operator === '>=' ? difference >= 0 : difference <= 0
}

const lower = (value: Json): string => {
  if (value === null) return ''
  return (typeof value === 'object' ? JSON.stringify(value) : String(value)).toLowerCase()
}
