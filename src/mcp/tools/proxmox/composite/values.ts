import { AppError } from '../../../../jobs/errors.ts'
import { isRecord } from '../../../../jobs/records.ts'
import type { Args } from '../row-context.ts'
import type { Item } from '../shape/fields.ts'

/** Helpers that read values from Proxmox or a caller without trusting their type. */
export const text = (values: Args | Item, key: string): string | undefined => {
  const value = values[key]
  return value === undefined || value === null ? undefined : String(value)
}

export const items = (data: unknown): Item[] => (Array.isArray(data) ? data.filter(isRecord) : [])

export const item = (data: unknown): Item => (isRecord(data) ? data : {})

export const without = (values: Args, ...keys: string[]): Args =>
  Object.fromEntries(
    Object.entries(values).filter(([key, value]) => !keys.includes(key) && value !== undefined),
  )

/** Converts `32G`, `512M`, `1.5T` or a number of GiB to GiB, as Proxmox expects. Fractions are allowed. */
export const gibibytes = (size: string): string => {
  const match = /^(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?$/i.exec(size.trim())
  const factor = match ? GIB[(match[2]?.toUpperCase() || 'G') as keyof typeof GIB] : 0
  const value = Number(match?.[1] ?? 0) * factor
  if (value <= 0)
    throw new AppError('invalid', `Invalid size '${size}'.`, {
      hint: 'Write 32G, 512M, 1.5T or a number of GiB.',
    })
  // No storage allocates in steps smaller than a thousandth of a GiB.
  return String(Number(value.toFixed(3)) || 0.001)
}

const GIB = { K: 1 / 2 ** 20, M: 1 / 2 ** 10, G: 1, T: 2 ** 10 } as const

/** Parses `virtio=AA:BB,bridge=vmbr0`. The order is kept, because the first entry may have no key. */
export const parseProps = (props: string): Map<string, string> =>
  new Map(
    props
      .split(',')
      .filter(Boolean)
      .map(part => {
        const at = part.indexOf('=')
        return at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)]
      }),
  )

export const formatProps = (props: Map<string, string>): string =>
  [...props].map(([key, value]) => (value === '' ? key : `${key}=${value}`)).join(',')

/** Checks that a value cannot add another property to the string. */
export const propValue = (key: string, value: string): string => {
  if (!/[,\0\r\n]/.test(value)) return value
  throw new AppError('invalid', `'${key}' cannot contain a comma or a line break.`)
}
