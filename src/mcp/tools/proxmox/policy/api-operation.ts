import { AppError } from '../../../../jobs/errors.ts'
import type { Scalar } from '../../../../proxmox/encode.ts'
import { type Method, pathParams } from '../table/define-row.ts'

/** A request as the policy sees it. Path segments are decoded, so that no encoding can hide one. */
export interface Operation {
  readonly method: Method
  readonly segments: readonly string[]
  readonly params: OperationParams
}

export type OperationParams = Readonly<Record<string, Scalar | readonly Scalar[]>>

export const operationPath = (operation: Operation): string =>
  `/${operation.segments.map(encodeURIComponent).join('/')}`

/** The path for display, not encoded. */
export const showPath = (operation: Operation): string => `/${operation.segments.join('/')}`

/** Fills `{name}` in a path template and validates every segment and parameter. */
export const bind = (method: Method, template: string, place: Values, params: Values): Operation => {
  const segments = template
    .split('/')
    .filter(Boolean)
    .map(part => {
      if (!part.startsWith('{')) return part
      const key = part.slice(1, -1)
      const value = place[key]
      if (value === undefined) throw new AppError('invalid', `'${key}' is needed for ${method} ${template}.`)
      return checkSegment(String(value), key)
    })
  const given = Object.entries(params).filter(([, value]) => value !== undefined)
  return { method, segments, params: checkParams(Object.fromEntries(given)) }
}

/** Like `bind`, from one set of values: those not used in the path become parameters. */
export const bindAll = (method: Method, template: string, values: Values): Operation => {
  const inPath = new Set(pathParams(template))
  const params = Object.entries(values).filter(([key]) => !inPath.has(key))
  return bind(method, template, values, Object.fromEntries(params))
}

type Values = Readonly<Record<string, unknown>>

/** Parses a path as users and models write it, with or without `/api2/json`. */
export const parsePath = (text: string): string[] => {
  const parts = text.replace(/^\/?(?:api2\/(?:json|extjs)\/)?/, '').split('/')
  if (parts.at(-1) === '') parts.pop()
  const found = TRAILING.find(
    ([head, length]) => parts.length > length && head.every((part, i) => part === '*' || part === parts[i]),
  )
  if (!found) return parts.map(part => checkSegment(part, 'path'))
  // The last segment of these paths may contain slashes: local:iso/debian.iso, 10.0.0.0/24.
  const [, length] = found
  parts.slice(length - 1).forEach(part => void checkSegment(part, 'path'))
  const last = parts.slice(length - 1).join('/')
  return [...parts.slice(0, length - 1).map(part => checkSegment(part, 'path')), last]
}

const TRAILING: readonly (readonly [readonly string[], number])[] = [
  [['nodes', '*', 'storage', '*', 'content'], 6],
  [['cluster', 'firewall', 'ipset', '*'], 5],
  [['nodes', '*', '*', '*', 'firewall', 'ipset', '*'], 8],
]

/** Rejects characters that URL parsers and routers interpret. */
const checkSegment = (segment: string, label: string): string => {
  const parts = segment.split('/')
  const bad = parts.some(part => part === '' || part === '.' || part === '..')
  if (bad || /[\p{Cc}\s?#%\\]/u.test(segment) || segment.length > 1024) {
    throw new AppError('invalid', `${label} '${printable(segment)}' cannot be part of a Proxmox path.`, {
      hint: 'Write names as they are, not URL-encoded, without spaces, ?, #, %, backslashes or dot segments.',
    })
  }
  return segment
}

export const checkParams = (params: Readonly<Record<string, unknown>>): OperationParams => {
  const checked: Record<string, Scalar | Scalar[]> = {}
  for (const [key, value] of Object.entries(params)) {
    if (!/^[A-Za-z][A-Za-z0-9_-]{0,63}$/.test(key)) {
      throw new AppError('invalid', `Invalid parameter name '${printable(key)}'.`)
    }
    checked[key] = Array.isArray(value) ? value.map(one => checkValue(key, one)) : checkValue(key, value)
  }
  return checked
}

const checkValue = (key: string, value: unknown): Scalar => {
  if (typeof value === 'string' && !value.includes('\0')) return value
  if (typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))) return value
  throw new AppError(
    'invalid',
    `Parameter '${key}' must be text, a number, true or false, or a list of these.`,
  )
}

const printable = (text: string) => text.replace(/\p{Cc}/gu, '?').slice(0, 80)
