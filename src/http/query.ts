import { z } from 'zod'
import { AppError } from '../jobs/errors.ts'
import { didYouMean } from '../jobs/nearest.ts'

const NONE = z.strictObject({})

/**
 * Parses the query of a URL with a schema that has numbers and booleans, although a URL has only text. Unknown and
 * repeated keys are errors: a misspelt filter must not silently list everything.
 */
export function queryReader(schema: undefined): (url: string) => Record<string, never>
export function queryReader<Q extends z.ZodObject>(schema: Q): (url: string) => z.output<Q>
export function queryReader(schema: z.ZodObject = NONE) {
  const kinds = kindsOf(schema)
  const known = [...kinds.keys()]
  const defaults = schema.safeParse({})
  return (url: string) => {
    const mark = url.indexOf('?')
    if ((mark === -1 || mark === url.length - 1) && defaults.success) return defaults.data
    const given = new URLSearchParams(mark === -1 ? '' : url.slice(mark + 1))
    const input: Record<string, unknown> = {}
    for (const [key, value] of given) {
      if (!kinds.has(key)) throw refuse(`unknown parameter '${key}'${didYouMean(key, known)}`, known)
      if (Object.hasOwn(input, key)) throw refuse(`'${key}' is given twice`, known)
      input[key] = convert(kinds.get(key), value)
    }
    const parsed = schema.safeParse(input)
    if (parsed.success) return parsed.data
    throw refuse(parsed.error.issues.map(issue => explain(issue, given)).join('; '), known)
  }
}

type Kind = 'number' | 'boolean' | 'string'

const kindsOf = (schema: z.ZodObject): Map<string, Kind> => {
  const { properties = {} } = z.toJSONSchema(schema, { io: 'input' })
  return new Map(
    Object.entries(properties).map(([key, property]) => {
      const type = typeof property === 'object' ? property.type : undefined
      return [key, type === 'number' || type === 'integer' ? 'number' : type === 'boolean' ? type : 'string']
    }),
  )
}

/** Invalid numbers stay text, and the schema refuses them. */
const convert = (kind: Kind | undefined, value: string): unknown => {
  if (kind === 'number' && /^-?\d+(\.\d+)?$/.test(value)) return Number(value)
  if (kind === 'boolean' && /^(1|true)$/.test(value)) return true
  if (kind === 'boolean' && /^(0|false)$/.test(value)) return false
  return value
}

const explain = (issue: z.core.$ZodIssue, given: URLSearchParams): string => {
  const key = String(issue.path[0] ?? '')
  const value = given.get(key)
  const message = issue.message.replace(/^\w/, letter => letter.toLowerCase())
  return value === null ? `'${key}' is required` : `'${key}' is ${JSON.stringify(shorten(value))}: ${message}`
}

const shorten = (value: string): string => (value.length > 60 ? `${value.slice(0, 57)}…` : value)

const refuse = (problem: string, known: readonly string[]): AppError =>
  new AppError('invalid', `Invalid query: ${problem}.`, {
    hint: known.length === 0 ? 'This route takes no parameters.' : `Parameters here: ${known.join(', ')}.`,
  })
