import { z } from 'zod'
import type { Row, Tool } from './table/define.ts'
import type { Param } from './table/params.ts'

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
  if (rows.some(row => row.tier !== 'read')) shape.plan_token = z.string().max(200).optional()
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
      return z.preprocess(
        fromText(Number),
        z
          .int()
          .min(param.min ?? 0)
          .max(param.max ?? Number.MAX_SAFE_INTEGER),
      )
    case 'number':
      return z.preprocess(
        fromText(Number),
        z
          .number()
          .min(param.min ?? 0)
          .max(param.max ?? Number.MAX_SAFE_INTEGER),
      )
    case 'boolean':
      return z.preprocess(toBoolean, z.boolean())
    case 'strings':
      return z.preprocess(toList, z.array(z.string().max(LONGEST)).max(500))
    case 'object':
      return z.preprocess(
        fromText(parseJson),
        z.record(z.string(), z.union([z.string().max(LONGEST), z.number(), z.boolean()])),
      )
    case 'string':
      return param.values ? z.enum(param.values as [string, ...string[]]) : textSchema(param)
  }
}

const textSchema = ({ pattern, maxLength = 8192 }: Param): z.ZodType => {
  const text = z.string().max(maxLength)
  return z.preprocess(
    value => (typeof value === 'number' ? String(value) : value),
    pattern ? text.regex(pattern) : text.min(1),
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
