import { isRecord, valueAt } from '../../../../jobs/records.ts'
/**
 * A column of an answer. Proxmox sends numbers as strings, booleans as 0/1, percentages as fractions and sizes as bytes.
 * The table declares the unit of each column (`cpu:pct mem:gib template:bool`), and the model gets it in that unit.
 */
export interface Field {
  /** Key in the response of Proxmox. Dots select nested keys. */
  readonly key: string
  /** Column name, with the unit as suffix. */
  readonly name: string
  readonly unit: Unit
}

type Unit = keyof typeof UNITS
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json }
export type Item = Readonly<Record<string, unknown>>

export const fields = (spec: string): Field[] =>
  spec
    .split(' ')
    .filter(Boolean)
    .map(part => {
      const [key = '', unit = 'raw'] = part.split(':')
      if (!(unit in UNITS)) throw new TypeError(`unknown unit '${unit}' in column '${part}'`)
      return { key, name: key.replaceAll('.', '_') + UNITS[unit as Unit].suffix, unit: unit as Unit }
    })

export const pick = (item: Item, field: Field): Json => {
  const value = lookup(item, field.key)
  return value === undefined || value === null ? null : UNITS[field.unit].read(value)
}

const lookup = (item: Item, key: string): unknown => {
  if (key in item) return item[key]
  return valueAt(item, key.split('.'))
}

const round = (value: number, digits: number) => Number(value.toFixed(digits))
const number = (convert: (value: number) => number) => (value: unknown) => {
  const parsed = typeof value === 'string' && value.trim() === '' ? Number.NaN : Number(value)
  return Number.isFinite(parsed) ? convert(parsed) : plain(value)
}

const UNITS = {
  raw: { suffix: '', read: (value: unknown) => plain(value) },
  int: { suffix: '', read: number(value => Math.trunc(value)) },
  num: { suffix: '', read: number(value => round(value, 3)) },
  bool: { suffix: '', read: (value: unknown) => ['1', 'true', 'yes', 'on'].includes(String(value)) },
  pct: { suffix: '_pct', read: number(value => round(value * 100, 1)) },
  gib: { suffix: '_gib', read: number(value => round(value / 2 ** 30, 2)) },
  mib: { suffix: '_mib', read: number(value => round(value / 2 ** 20, 1)) },
  s: { suffix: '_s', read: number(value => Math.round(value)) },
  time: { suffix: '', read: number2time },
} as const satisfies Record<string, { suffix: string; read: (value: unknown) => Json }>

function number2time(value: unknown): Json {
  const seconds = Number(value)
  if (!Number.isFinite(seconds) || seconds <= 0 || seconds > 8.64e12) return plain(value)
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')
}

/** Converts any value to JSON. Values without a JSON form become null. */
export const plain = (value: unknown): Json => {
  if (typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  if (Array.isArray(value)) return value.map(plain)
  if (!isRecord(value)) return null
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]))
}
