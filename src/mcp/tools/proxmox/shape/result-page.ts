import { createHash } from 'node:crypto'
import { AppError } from '../../../../jobs/errors.ts'
import { isRecord } from '../../../../jobs/records.ts'
import { type Field, type Json, pick, plain } from './fields.ts'
import { parseFilter } from './row-filter.ts'

export interface Query {
  readonly filter?: string | undefined
  readonly fields?: string | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

export interface Page {
  [key: string]: Json
  columns: string[]
  rows: Json[][]
  total: number
}

const PAGE_SIZE = 100

/** Formats a list as column names and rows, which takes a third of the tokens of a list of objects. */
export const toPage = (items: unknown, defaults: readonly Field[], query: Query = {}): Page => {
  const list = (Array.isArray(items) ? items : []).map(item => (isRecord(item) ? item : { value: item }))
  const known = new Map(defaults.map(field => [field.name, field]))
  for (const item of list) {
    for (const key of Object.keys(item)) if (!known.has(key)) known.set(key, { key, name: key, unit: 'raw' })
  }
  const columns = chooseColumns(query.fields, defaults, known)
  const shaped = list.map(item => {
    const row: Record<string, Json> = {}
    for (const field of known.values()) row[field.name] = pick(item, field)
    return row
  })
  const wanted = query.filter ? shaped.filter(parseFilter(query.filter, [...known.keys()])) : shaped
  const start = readCursor(query)
  const limit = query.limit ?? PAGE_SIZE
  const slice = wanted.slice(start, start + limit)
  const shown = columns.filter(column => query.fields || slice.some(row => row[column] !== null))
  const page: Page = {
    columns: shown,
    rows: slice.map(row => shown.map(column => row[column] ?? null)),
    total: wanted.length,
  }
  if (start + limit < wanted.length) page.next_cursor = writeCursor(start + limit, query)
  return page
}

/** Formats one object: all its fields, or those that the table names. Absent fields are omitted. */
export const toRecord = (data: unknown, defaults: readonly Field[]): Record<string, Json> => {
  if (!isRecord(data)) return { value: plain(data) }
  if (defaults.length === 0) return plain(data) as Record<string, Json>
  const entries = defaults.map(field => [field.name, pick(data, field)] as const)
  return Object.fromEntries(entries.filter(([, value]) => value !== null))
}

const chooseColumns = (
  wanted: string | undefined,
  defaults: readonly Field[],
  known: Map<string, Field>,
): string[] => {
  if (!wanted) return defaults.length > 0 ? defaults.map(field => field.name) : [...known.keys()]
  const names = wanted.split(/[\s,]+/).filter(Boolean)
  return names.map(name => {
    if (known.has(name)) return name
    const byKey = defaults.find(field => field.key === name)
    if (byKey) return byKey.name
    if (known.size === 0) return name
    throw new AppError('invalid', `No column '${name}'.`, {
      hint: `Columns: ${[...known.keys()].join(', ')}.`,
    })
  })
}

/** Ties a cursor to its query, so that it is not used with another one. */
const stamp = (query: Query) =>
  createHash('sha256')
    .update(`${query.filter ?? ''}\n${query.fields ?? ''}`)
    .digest('base64url')
    .slice(0, 6)

const writeCursor = (offset: number, query: Query) => `${offset.toString(36)}.${stamp(query)}`

const readCursor = (query: Query): number => {
  if (!query.cursor) return 0
  const [offset = '', check] = query.cursor.split('.')
  const start = /^[0-9a-z]{1,8}$/.test(offset) ? Number.parseInt(offset, 36) : Number.NaN
  if (Number.isNaN(start) || check !== stamp(query)) {
    throw new AppError('invalid', `The cursor '${query.cursor}' does not belong to this query.`, {
      hint: 'Repeat filter and fields of the first page, or leave the cursor out to start again.',
    })
  }
  return start
}
