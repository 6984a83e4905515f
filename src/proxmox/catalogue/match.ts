import type { Operation } from './operation.ts'

/** The operation that a path means; a literal segment beats a placeholder. */
export const matchPath = (
  operations: readonly Operation[],
  verb: string,
  path: string,
): Operation | undefined => {
  const wanted = segments(path)
  let best: { operation: Operation; literal: number } | undefined
  for (const operation of operations) {
    if (operation.verb !== verb.toUpperCase()) continue
    const literal = score(segments(operation.path), wanted)
    if (literal >= 0 && literal > (best?.literal ?? -1)) best = { operation, literal }
  }
  return best?.operation
}

const segments = (path: string): string[] =>
  path
    .replace(/^\/api2\/(json|extjs)/, '')
    .split('/')
    .filter(part => part !== '')

const score = (template: readonly string[], wanted: readonly string[]): number => {
  if (template.length !== wanted.length) return -1
  let literal = 0
  for (const [index, part] of template.entries()) {
    if (part === wanted[index]) literal++
    else if (!part.startsWith('{')) return -1
  }
  return literal
}
