import { z } from 'zod'
import { nearest } from '../jobs/nearest.ts'

type Issue = z.core.$ZodIssue

/** Describes a validation issue in one sentence. For an unknown key, it suggests the nearest known one. */
export const describeIssue = (issue: Issue, schema: z.ZodType): string => {
  const where = formatPath(issue.path)
  if (issue.code !== 'unrecognized_keys') return `${where || 'the value'}: ${lowerFirst(issue.message)}`
  const key = issue.keys[0]!
  const known = keysAt(schema, issue.path)
  const close = nearest(key, known)
  const suggestion = close ? `; did you mean "${close}"?` : `; known keys are ${known.join(', ')}`
  return `unknown key "${where ? `${where}.` : ''}${key}"${suggestion}`
}

const formatPath = (path: readonly PropertyKey[]): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`
    return text ? `${text}.${String(key)}` : String(key)
  }, '')

/** The keys of the object schema at a path, also inside optional, default and pipe schemas. */
export const keysAt = (schema: z.ZodType, path: readonly PropertyKey[]): string[] => {
  const here = path.reduce<unknown>((current, key) => {
    const open = unwrap(current)
    if (open instanceof z.ZodObject) return open.shape[String(key)]
    return open instanceof z.ZodArray ? open.element : undefined
  }, schema)
  const object = unwrap(here)
  return object instanceof z.ZodObject ? Object.keys(object.shape) : []
}

const unwrap = (schema: unknown): unknown => {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) {
    return unwrap(schema.unwrap())
  }
  return schema instanceof z.ZodPipe ? unwrap(schema.in) : schema
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)
