import type { StandardSchemaWithJSON } from '@modelcontextprotocol/server'
import type { JsonSchema } from './compact-schema.ts'

/**
 * A schema that the SDK lists but does not validate: tools validate their input themselves, with better messages. So
 * the list needs no `additionalProperties: false`, which would cost tokens for each tool.
 */
export const listedSchema = (json: JsonSchema): StandardSchemaWithJSON => {
  const { additionalProperties: _, ...copy } = json
  return {
    '~standard': {
      version: 1,
      vendor: 'deputy',
      validate: value => ({ value }),
      jsonSchema: { input: () => copy, output: () => copy },
    },
  }
}
