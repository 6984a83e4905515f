import type { Operation } from './catalogue-operation.ts'

export type FindOperation = (verb: string, path: string) => Operation | undefined

/** Finds the operation of a path; a literal segment takes precedence over a placeholder. Indexed, because every call uses it. */
export const createMatcher = (operations: readonly Operation[]): FindOperation => {
  const byShape = new Map<string, { operation: Operation; parts: string[] }[]>()
  for (const operation of operations) {
    const parts = segments(operation.path)
    const shape = shapeOf(operation.verb, parts)
    byShape.set(shape, [...(byShape.get(shape) ?? []), { operation, parts }])
  }
  return (verb, path) => {
    const wanted = segments(path)
    let best: { operation: Operation; literal: number } | undefined
    for (const { operation, parts } of byShape.get(shapeOf(verb.toUpperCase(), wanted)) ?? []) {
      const literal = score(parts, wanted)
      if (literal > (best?.literal ?? -1)) best = { operation, literal }
    }
    return best?.operation
  }
}

const shapeOf = (verb: string, parts: readonly string[]): string => `${verb} ${parts.length}`

const segments = (path: string): string[] =>
  path
    .replace(/^\/api2\/(json|extjs)/, '')
    .split('/')
    .filter(part => part !== '')

const score = (template: readonly string[], wanted: readonly string[]): number => {
  let literal = 0
  for (const [index, part] of template.entries()) {
    if (part === wanted[index]) literal++
    else if (!part.startsWith('{')) return -1
  }
  return literal
}
