import { isRecord } from '../../jobs/records.ts'
import type { Operation, Parameter, Verb } from './catalogue-operation.ts'

/** Converts the tree of paths to a flat list. Unexpected input is skipped or kept loosely typed; it never throws. */
export const normalise = (tree: unknown): Operation[] => {
  const found: Operation[] = []
  walk(tree, found)
  return found.sort((a, b) => a.path.localeCompare(b.path) || a.verb.localeCompare(b.verb))
}

const VERBS: readonly string[] = ['GET', 'POST', 'PUT', 'DELETE']

const walk = (nodes: unknown, found: Operation[]): void => {
  for (const node of asArray(nodes)) {
    const { path, info, children } = asRecord(node)
    if (typeof path === 'string') {
      for (const [verb, method] of Object.entries(asRecord(info))) {
        if (VERBS.includes(verb)) found.push(operation(verb as Verb, path, asRecord(method)))
      }
    }
    walk(children, found)
  }
}

const operation = (verb: Verb, path: string, info: Loose): Operation => {
  const schema = asRecord(info.parameters)
  return {
    verb,
    path,
    name: text(info.name),
    description: text(info.description),
    params: Object.entries(asRecord(schema.properties)).map(([name, one]) => parameter(name, asRecord(one))),
    rootOnly: info.permissions === undefined,
    returns: text(asRecord(info.returns).type),
    open: schema.additionalProperties !== undefined && isTrue(schema.additionalProperties),
  }
}

const parameter = (name: string, schema: Loose): Parameter => {
  const format = schema.format
  const nested = typeof format === 'object' && format !== null ? Object.keys(format) : undefined
  return strip({
    name: name.replace(/\[n\]$/, ''),
    indexed: name.endsWith('[n]'),
    type: text(schema.type) || 'string',
    required: !isTrue(schema.optional),
    description: text(schema.description),
    enum: Array.isArray(schema.enum) ? schema.enum.map(String) : undefined,
    minimum: number(schema.minimum),
    maximum: number(schema.maximum),
    minLength: number(schema.minLength),
    maxLength: number(schema.maxLength),
    pattern: typeof schema.pattern === 'string' ? schema.pattern : undefined,
    format: typeof format === 'string' ? format : undefined,
    properties: nested,
  })
}

type Loose = Readonly<Record<string, unknown>>

const asRecord = (value: unknown): Loose => (isRecord(value) ? value : {})
const asArray = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const text = (value: unknown): string => (typeof value === 'string' ? value.replace(/\s+/g, ' ').trim() : '')
/** Perl has no booleans: 1, "1" and true are all in use. */
const isTrue = (value: unknown): boolean => value === true || value === 1 || value === '1'
const number = (value: unknown): number | undefined => {
  if (value === undefined || value === null || value === '') return undefined
  const parsed = Number(value)
  return Number.isFinite(parsed) ? parsed : undefined
}
const strip = (loose: { [K in keyof Parameter]: Parameter[K] | undefined }): Parameter =>
  Object.fromEntries(Object.entries(loose).filter(([, value]) => value !== undefined)) as object as Parameter
