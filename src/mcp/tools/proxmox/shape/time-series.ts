import { isRecord } from '../../../../jobs/records.ts'
import { type Field, type Item, type Json, pick } from './fields.ts'

/**
 * Proxmox sends 70 points or more, oldest first. They are merged into a few buckets that are counted back from the end,
 * so that the last row is the most recent measurement.
 */
export const toSeries = (
  data: unknown,
  known: readonly Field[],
  { points = 12, peak = false }: { points?: number; peak?: boolean } = {},
): Record<string, Json> => {
  const measured = (Array.isArray(data) ? data.filter(isRecord) : []).filter(hasValues)
  const columns = known.filter(
    field => field.key === 'time' || measured.some(item => item[field.key] != null),
  )
  const size = Math.max(1, Math.ceil(measured.length / points))
  const buckets: Item[][] = []
  for (let end = measured.length; end > 0; end -= size)
    buckets.unshift(measured.slice(Math.max(0, end - size), end))
  const rows = buckets.map(bucket => columns.map(field => merge(bucket, field, peak)))
  return {
    columns: columns.map(field => field.name),
    rows,
    points_merged: size,
    of: peak ? 'maximum' : 'average',
    total: measured.length,
  }
}

/** The current interval has a time but no values yet. */
const hasValues = (item: Item) => Object.entries(item).some(([key, value]) => key !== 'time' && value != null)

const merge = (bucket: readonly Item[], field: Field, peak: boolean): Json => {
  const last = bucket.at(-1) ?? {}
  if (field.key === 'time') return pick(last, field)
  const values = bucket
    .map(item => item[field.key])
    .filter(value => value != null)
    .map(Number)
  const numbers = values.filter(Number.isFinite)
  if (numbers.length === 0) return null
  const value = peak ? Math.max(...numbers) : numbers.reduce((sum, next) => sum + next, 0) / numbers.length
  const shown = pick({ [field.key]: value }, field)
  return typeof shown === 'number' ? Number(shown.toPrecision(4)) : shown
}
