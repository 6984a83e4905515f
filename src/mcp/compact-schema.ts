import { z } from 'zod'

export type JsonSchema = Readonly<Record<string, unknown>>

/**
 * The JSON Schema that a model reads. It costs tokens in every conversation, so it keeps what helps the model to write
 * a correct call and drops what only a validator needs. The server validates the arguments itself.
 */
export const compactSchema = (schema: z.ZodObject, io: 'input' | 'output'): JsonSchema => {
  const { $schema: _, ...json } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return io === 'output' ? outline(json) : strip(json)
}

const LONGEST_PATTERN = 24
const NOISE = new Set(['propertyNames', 'maxLength', 'maxItems', 'minItems', 'minLength', 'format'])

const strip = (node: JsonSchema): JsonSchema => {
  const kept: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(node)) {
    if (NOISE.has(key)) continue
    if (key === 'pattern' && ('description' in node || String(value).length > LONGEST_PATTERN)) continue
    // zod adds the range of safe integers to every integer.
    if ((key === 'minimum' || key === 'maximum') && Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER)
      continue
    // zod writes an empty schema where any value is allowed; some clients only understand `true`.
    if (key === 'additionalProperties' && isObject(value) && Object.keys(value).length === 0) kept[key] = true
    else if (key === 'properties') kept[key] = mapValues(value, child => strip(child))
    else kept[key] = stripValue(value)
  }
  return kept
}

const stripValue = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(stripValue)
  return isObject(value) ? strip(value) : value
}

/** An output schema keeps only the names and types of fields: the model sees the values anyway. */
const outline = (node: JsonSchema): JsonSchema => ({
  type: 'object',
  properties: mapValues(node.properties, typeOnly),
})

const typeOnly = (node: JsonSchema): JsonSchema => {
  const kept: Record<string, unknown> = {}
  if (node.type !== undefined) kept.type = node.type
  if (node.enum !== undefined) kept.enum = node.enum
  return kept
}

const mapValues = (value: unknown, map: (child: JsonSchema) => JsonSchema): Record<string, JsonSchema> =>
  isObject(value)
    ? Object.fromEntries(
        Object.entries(value).map(([key, child]) => [key, isObject(child) ? map(child) : {}]),
      )
    : {}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
