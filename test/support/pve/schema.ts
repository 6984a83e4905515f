import { badParams } from './errors.ts'
import { checkFormat } from './formats.ts'

export interface ParamSchema {
  readonly type?: 'string' | 'integer' | 'number' | 'boolean' | 'array'
  readonly optional?: boolean
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly enum?: readonly string[]
  readonly format?: string
  readonly description?: string
  readonly default?: string | number
  /** For `net[n]` and its like: the highest index. */
  readonly last?: number
}

export type ParamTable = Readonly<Record<string, ParamSchema>>
export type Raw = Readonly<Record<string, string | string[]>>
export type Values = Record<string, string | number | boolean | string[]>

/** Checks parameters as PVE::JSONSchema does, wording included, and turns numbers and booleans into such. */
export const verify = (table: ParamTable, raw: Raw): Values => {
  const errors: Record<string, string> = {}
  const values: Values = {}
  for (const [name, given] of Object.entries(raw)) {
    const schema = lookup(table, name)
    if (!schema) {
      errors[name] = 'property is not defined in schema and the schema does not allow additional properties'
      continue
    }
    const problem = verifyOne(schema, given)
    if (problem === undefined) values[name] = convert(schema, given)
    else errors[name] = problem
  }
  for (const [name, schema] of Object.entries(table)) {
    if (!schema.optional && schema.last === undefined && raw[name] === undefined) {
      errors[name] = 'property is missing and it is not optional'
    }
  }
  if (Object.keys(errors).length > 0) throw badParams(errors)
  return values
}

const lookup = (table: ParamTable, name: string): ParamSchema | undefined => {
  if (Object.hasOwn(table, name) && !name.endsWith('[n]')) return table[name]
  const indexed = /^([a-z]+)(\d+)$/.exec(name)
  const schema = indexed ? table[`${indexed[1]}[n]`] : undefined
  return schema && Number(indexed![2]) <= (schema.last ?? 0) ? schema : undefined
}

const verifyOne = (schema: ParamSchema, given: string | string[]): string | undefined => {
  const type = schema.type ?? 'string'
  if (type === 'array') return undefined
  if (Array.isArray(given)) {
    if (schema.format?.endsWith('-list')) return undefined
    return `type check ('${type}') failed - got ARRAY`
  }
  if (type === 'boolean' && !/^[01]$/.test(given)) return `type check ('boolean') failed - got '${given}'`
  if (type === 'integer' && !/^[+-]?\d+$/.test(given)) return `type check ('integer') failed - got '${given}'`
  if (type === 'number' && !/^[+-]?\d+(\.\d+)?$/.test(given))
    return `type check ('number') failed - got '${given}'`
  return verifyLimits(schema, given, type !== 'string')
}

const verifyLimits = (schema: ParamSchema, given: string, numeric: boolean): string | undefined => {
  const { minimum, maximum, minLength, maxLength } = schema
  if (numeric && minimum !== undefined && Number(given) < minimum)
    return `value must have a minimum value of ${minimum}`
  if (numeric && maximum !== undefined && Number(given) > maximum)
    return `value must have a maximum value of ${maximum}`
  if (maxLength !== undefined && given.length > maxLength)
    return `value may only be ${maxLength} characters long`
  if (minLength !== undefined && given.length < minLength)
    return `value must be at least ${minLength} characters long`
  if (schema.enum && !schema.enum.includes(given)) {
    return `value '${given}' does not have a value in the enumeration '${schema.enum.join(', ')}'`
  }
  const format = schema.format === undefined ? undefined : checkFormat(schema.format, given)
  return format === undefined ? undefined : `invalid format - ${format}`
}

const convert = (schema: ParamSchema, given: string | string[]): Values[string] => {
  if (schema.type === 'array') return Array.isArray(given) ? given : [given]
  const text = Array.isArray(given) ? given.join(',') : given
  if (schema.type === 'integer' || schema.type === 'number') return Number(text)
  return schema.type === 'boolean' ? text === '1' : text
}
