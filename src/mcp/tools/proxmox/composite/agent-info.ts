import { isRecord } from '../../../../jobs/records.ts'
import type { Item } from '../shape/fields.ts'
import { items, text } from './values.ts'

/** The agent wraps every answer in `result`. */
export const result = (data: unknown): unknown => (isRecord(data) && 'result' in data ? data.result : data)

/** For responses that are a single value. */
export const value = (data: unknown): unknown => {
  const inner = result(data)
  return isRecord(inner) ? inner : { result: inner }
}

/** Nanoseconds since the epoch. */
export const guestTime = (data: unknown): unknown => {
  const nanoseconds = Number(result(data))
  return Number.isFinite(nanoseconds) ? { time: new Date(nanoseconds / 1e6).toISOString() } : { time: null }
}

export const interfaces = (data: unknown): Item[] =>
  items(result(data)).map(one => ({
    ...one,
    addresses: items(one['ip-addresses']).map(
      address => `${text(address, 'ip-address')}/${text(address, 'prefix')}`,
    ),
  }))
