import type { StandardSchemaWithJSON } from '@modelcontextprotocol/server'
import type { JsonSchema } from './compact-schema.ts'

/** A schema the SDK lists but does not check: tools check their own input, with better words. */
export const listedSchema = (json: JsonSchema): StandardSchemaWithJSON => {
  const copy = { ...json }
  return {
    '~standard': {
      version: 1,
      vendor: 'deputy',
      validate: value => ({ value }),
      jsonSchema: { input: () => copy, output: () => copy },
    },
  }
}
