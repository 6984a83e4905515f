import { z } from 'zod'
import type { Param } from './table/common-params.ts'
import type { Row, Tool } from './table/define-row.ts'

/**
 * The input schema of a tool: one strict object, never a union, because clients drop tools with a union at the top
 * level. The description lists the arguments of each action, and `checkRow` checks them.
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
  // If a rule requires confirmation of another action, pass its plan token to proxmox_api_call.
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
      // Values are checked when they become parameters: clients do not all support a list of types.
      return z.preprocess(fromJsonText, z.record(z.string(), z.unknown()))
    case 'string':
      return param.values ? z.enum(param.values as [string, ...string[]]) : textSchema(param)
  }
}

/** Checks limits without listing them in the schema, to save tokens; the error message names them. */
const inRange = (schema: z.ZodType<number>, { min = 0, max = Number.MAX_SAFE_INTEGER }: Param) =>
  schema.refine(value => value >= min && value <= max, `must be from ${min} to ${max}`)

const textSchema = ({ pattern, about, maxLength = 8192 }: Param): z.ZodType => {
  const text = z.string().max(maxLength)
  const message = about ? `invalid, expected ${about}` : `does not match ${String(pattern)}`
  return z.preprocess(
    value => (typeof value === 'number' ? String(value) : value),
    pattern ? text.refine(value => pattern.test(value), message) : text.min(1),
  )
}

/** Converts text, because models and clients sometimes send numbers, flags and objects as text. */
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

/** Parses an object or a list that a client has sent as text. */
export const fromJsonText = (value: unknown): unknown => {
  if (typeof value !== 'string') return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}
