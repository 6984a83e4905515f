import { z } from 'zod'
import type { Param } from './table/common-params.ts'
import type { Row, Tool } from './table/define-row.ts'

/**
 * The input of a tool: one strict object, never a union, because clients drop tools whose schema has a choice at the
 * top. Which action needs what is said in the description and checked with errors that name action and field.
 */
export const inputSchema = (tool: Tool): z.ZodObject => {
  const actions = Object.keys(tool.actions)
  const shape: Record<string, z.ZodType> = {}
  if (actions[0] !== '') shape.action = z.enum(actions as [string, ...string[]])
  const rows = Object.values(tool.actions)
  for (const [name, param] of Object.entries(tool.params)) {
    if (!rows.some(row => takes(row, name))) continue
    const schema = paramSchema(param)
    shape[name] = rows.every(row => row.required.includes(name)) ? schema : schema.optional()
  }
  // Where a rule asks for confirmation of anything else, proxmox_api_call takes the token for the same operation.
  if (rows.some(row => row.worst === 'destructive')) shape.plan_token = z.string().max(200).optional()
  return z.strictObject(shape)
}

const takes = (row: Row, name: string) => row.required.includes(name) || row.optional.includes(name)

const LONGEST = 65_536

const paramSchema = (param: Param): z.ZodType => {
  const schema = bare(param)
  return param.about === undefined ? schema : schema.describe(param.about)
}

const bare = (param: Param): z.ZodType => {
  switch (param.type) {
    case 'integer':
      return z.preprocess(fromText(Number), inRange(z.int(), param))
    case 'number':
      return z.preprocess(fromText(Number), inRange(z.number(), param))
    case 'boolean':
      return z.preprocess(toBoolean, z.boolean())
    case 'strings':
      return z.preprocess(toList, z.array(z.string().max(LONGEST)).max(500))
    case 'object':
      // What the values may be is checked where they become parameters: a list of types is not portable.
      return z.preprocess(fromText(parseJson), z.record(z.string(), z.unknown()))
    case 'string':
      return param.values ? z.enum(param.values as [string, ...string[]]) : textSchema(param)
  }
}

/** Limits are checked and told in the error; in the list they would cost more than they help. */
const inRange = (schema: z.ZodType<number>, { min = 0, max = Number.MAX_SAFE_INTEGER }: Param) =>
  schema.refine(value => value >= min && value <= max, `must be from ${min} to ${max}`)

const textSchema = ({ pattern, about, maxLength = 8192 }: Param): z.ZodType => {
  const text = z.string().max(maxLength)
  const told = about ? `is not what is meant: ${about}` : `does not match ${String(pattern)}`
  return z.preprocess(
    value => (typeof value === 'number' ? String(value) : value),
    pattern ? text.refine(value => pattern.test(value), told) : text.min(1),
  )
}

/** Models and clients send numbers, flags and objects as text now and then. */
const fromText = (convert: (text: string) => unknown) => (value: unknown) => {
  if (typeof value !== 'string' || value.trim() === '') return value
  const converted = convert(value)
  return Number.isNaN(converted) ? value : converted
}

const toBoolean = (value: unknown) => {
  if (value === 1 || value === '1' || value === 'true') return true
  return value === 0 || value === '0' || value === 'false' ? false : value
}

const toList = (value: unknown) => (typeof value === 'string' && value !== '' ? [value] : value)

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
