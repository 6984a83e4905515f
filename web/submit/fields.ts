import { valueAt } from '../../src/jobs/records.ts'

/** The part of JSON Schema that the manifest uses. */
export interface Schema {
  readonly type?: string
  readonly description?: string
  readonly enum?: readonly string[]
  readonly default?: unknown
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
}

/** How a property is edited. Text in a box stands for a value; `json` takes what has no simpler form. */
export type Kind = 'text' | 'number' | 'boolean' | 'choice' | 'list' | 'map' | 'json'

export interface Field {
  readonly name: string
  readonly kind: Kind
  readonly help: string
  readonly choices: readonly string[]
  readonly fallback: string
  readonly isMain: boolean
}

/** What most jobs need; the rest is folded away. */
const MAIN = ['task', 'agentType', 'runtime', 'files', 'artifacts', 'timeout', 'network']
/** Without a value on this page: a browser has no workspace, and a key is for programs that retry. */
const LEFT_OUT = ['idempotency_key', 'workspace']

export const fieldsOf = (schema: Schema): Field[] =>
  Object.entries(schema.properties ?? {})
    .filter(([name]) => !LEFT_OUT.includes(name))
    .map(([name, property]) => ({
      name,
      kind: kindOf(property),
      help: property.description ?? '',
      choices: property.enum ?? [],
      fallback: property.default === undefined ? '' : String(property.default),
      isMain: MAIN.includes(name),
    }))
    .sort((one, other) => rank(one.name) - rank(other.name))

const rank = (name: string): number => (MAIN.includes(name) ? MAIN.indexOf(name) : MAIN.length)

const kindOf = ({ type, enum: choices, items, properties, additionalProperties }: Schema): Kind => {
  if (choices !== undefined) return 'choice'
  if (type === 'string') return 'text'
  if (type === 'number' || type === 'integer') return 'number'
  if (type === 'boolean') return 'boolean'
  if (type === 'array' && items?.type === 'string') return 'list'
  if (type === 'object' && properties === undefined && isText(additionalProperties)) return 'map'
  return 'json'
}

const isText = (schema: Schema | boolean | undefined): boolean =>
  typeof schema === 'object' && schema.type === 'string'

/** The text of a box for a value of the manifest. */
export const toText = (kind: Kind, value: unknown): string => {
  if (value === undefined) return ''
  if (kind === 'list' && Array.isArray(value)) return value.join('\n')
  if (kind === 'map' && typeof value === 'object' && value !== null)
    return Object.entries(value)
      .map(([name, entry]) => `${name}=${entry}`)
      .join('\n')
  return kind === 'json' && typeof value !== 'string' ? JSON.stringify(value) : String(value)
}

/** Parses the text of a field. Invalid text is sent unchanged, so that the daemon reports the error. */
export const toValue = (kind: Kind, text: string): unknown => {
  if (text === '') return undefined
  if (kind === 'number') return Number.isNaN(Number(text)) ? text : Number(text)
  if (kind === 'boolean') return text === 'true'
  const lines = text.split('\n').filter(line => line.trim() !== '')
  if (kind === 'list') return lines
  if (kind === 'map')
    return Object.fromEntries(
      lines.map(line => {
        const [name = '', ...rest] = line.split('=')
        return [name.trim(), rest.join('=')]
      }),
    )
  if (kind !== 'json') return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Problems of the daemon by the field they name: "'timeout' is too small" belongs to timeout. */
export const problemsByField = (details: unknown): Map<string, string> => {
  const found = new Map<string, string>()
  const problems = valueAt(details, ['problems'])
  for (const problem of Array.isArray(problems) ? problems.map(String) : []) {
    const name = /'([A-Za-z_]+)/.exec(problem)?.[1] ?? ''
    found.set(name, found.has(name) ? `${found.get(name)}; ${problem}` : problem)
  }
  return found
}
