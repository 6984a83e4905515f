import { AppError } from '../../../../jobs/errors.ts'
import type { Args } from '../row-context.ts'
import { type Item, isItem } from '../shape/fields.ts'

/** Reading what Proxmox or a caller sent, without believing its shape. */
export const text = (values: Args | Item, key: string): string | undefined => {
  const value = values[key]
  return value === undefined || value === null ? undefined : String(value)
}

export const items = (data: unknown): Item[] => (Array.isArray(data) ? data.filter(isItem) : [])

export const item = (data: unknown): Item => (isItem(data) ? data : {})

export const without = (values: Args, ...keys: string[]): Args =>
  Object.fromEntries(
    Object.entries(values).filter(([key, value]) => !keys.includes(key) && value !== undefined),
  )

/** `32G`, `512M`, `1.5T`, or a bare number of GiB: what Proxmox wants is GiB, and it takes fractions. */
export const gibibytes = (size: string): string => {
  const match = /^(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?$/i.exec(size.trim())
  const factor = match ? GIB[(match[2]?.toUpperCase() || 'G') as keyof typeof GIB] : 0
  const value = Number(match?.[1] ?? 0) * factor
  if (value <= 0)
    throw new AppError('invalid', `'${size}' is no size.`, {
      hint: 'Write 32G, 512M, 1.5T or a number of GiB.',
    })
  // A thousandth of a GiB is as fine as any storage allocates.
  return String(Number(value.toFixed(3)) || 0.001)
}

const GIB = { K: 1 / 2 ** 20, M: 1 / 2 ** 10, G: 1, T: 2 ** 10 } as const

/** `virtio=AA:BB,bridge=vmbr0` ⇄ entries; the order is kept, because the first may stand without a key. */
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

/** A value inside a property string must not start a second property. */
export const propValue = (key: string, value: string): string => {
  if (!/[,\0\r\n]/.test(value)) return value
  throw new AppError('invalid', `'${key}' cannot contain a comma or a line break.`)
}
