import { z } from 'zod'
import { isRecord } from '../jobs/records.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

/**
 * The JSON Schema that a model reads. It costs tokens in every conversation, so it keeps what helps the model to write
 * a correct call and drops what only a validator needs. The server validates the arguments itself.
 */
export const compactSchema = (schema: z.ZodObject): JsonSchema => {
  const { $schema: _, ...json } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  return { ...strip(json), additionalProperties: false }
}

/** Larger limits, such as the seconds of a day, are seldom met. The error names them. */
const LARGEST_LIMIT = 100
const NOISE = new Set([
  ...['propertyNames', 'maxLength', 'maxItems', 'minItems', 'minLength', 'format', 'pattern'],
  'minimum',
])

const strip = (node: JsonSchema): JsonSchema => {
  const kept: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(node)) {
    if (NOISE.has(key)) continue
    if (key === 'maximum' && Number(value) > LARGEST_LIMIT) continue
    if (value === false && (key === 'default' || key === 'additionalProperties')) continue
    // zod writes an empty schema where any value is allowed; some clients only understand `true`.
    if (key === 'additionalProperties' && isRecord(value) && Object.keys(value).length === 0) kept[key] = true
    else if (key === 'properties') kept[key] = mapValues(value, child => strip(child))
    else kept[key] = stripValue(value)
  }
  return kept
}

const stripValue = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(stripValue)
  return isRecord(value) ? strip(value) : value
}

const mapValues = (value: unknown, map: (child: JsonSchema) => JsonSchema): Record<string, JsonSchema> =>
  isRecord(value)
    ? Object.fromEntries(
        Object.entries(value).map(([key, child]) => [key, isRecord(child) ? map(child) : {}]),
      )
    : {}
