import type { Operation } from './operation.ts'

export interface Match {
  readonly operation: Operation
  readonly inPath: Readonly<Record<string, string>>
}

/** The operation for a decoded path; a volume may hold slashes and takes the rest of it. */
export const route = (
  operations: readonly Operation[],
  method: string,
  segments: readonly string[],
): Match | undefined => {
  let best: (Match & { literal: number }) | undefined
  for (const operation of operations) {
    if (operation.method !== method) continue
    const match = matchTemplate(operation.path.slice(1).split('/'), segments)
    if (match && match.literal > (best?.literal ?? -1)) best = { operation, ...match }
  }
  return best
}

const matchTemplate = (template: readonly string[], segments: readonly string[]) => {
  const greedy = template.at(-1) === '{volume}'
  if (greedy ? segments.length < template.length : segments.length !== template.length) return undefined
  const inPath: Record<string, string> = {}
  let literal = 0
  for (const [index, part] of template.entries()) {
    if (part === '{volume}') inPath.volume = segments.slice(index).join('/')
    else if (part.startsWith('{')) inPath[part.slice(1, -1)] = segments[index]!
    else if (part === segments[index]) literal++
    else return undefined
  }
  return { inPath, literal }
}
