import type { Operation } from './catalogue-operation.ts'

export interface SearchHit {
  readonly verb: string
  readonly path: string
  readonly description: string
}

/** Finds operations that match all words, ordered by where the words match. */
export const searchOperations = (
  operations: readonly Operation[],
  query: string,
  limit = 20,
): SearchHit[] => {
  const words = query
    .toLowerCase()
    .split(/[\s,/{}]+/)
    .filter(word => word !== '')
  return operations
    .map(operation => ({ operation, score: scoreOf(operation, words) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.operation.path.length - b.operation.path.length)
    .slice(0, limit)
    .map(({ operation: { verb, path, description } }) => ({
      verb,
      path,
      description: firstSentence(description),
    }))
}

const scoreOf = (operation: Operation, words: readonly string[]): number => {
  const parts = operation.path.toLowerCase().split(/[/{}]+/)
  let total = 0
  for (const word of words) {
    const found = wordScore(operation, parts, word)
    if (found === 0) return 0
    total += found
  }
  // Of equal matches, prefer the shorter path.
  return total === 0 ? 0 : total + 5 / (1 + parts.length)
}

const wordScore = (operation: Operation, parts: readonly string[], word: string): number => {
  if (operation.verb.toLowerCase() === word) return 6
  if (parts.at(-1) === word) return 12
  if (parts.includes(word)) return 8
  if (parts.some(part => part.includes(word))) return 5
  if (operation.name.toLowerCase().includes(word)) return 4
  if (operation.description.toLowerCase().includes(word)) return 3
  return operation.params.some(param => param.name.toLowerCase().includes(word)) ? 2 : 0
}

const firstSentence = (text: string): string => {
  const end = text.search(/[.!](\s|$)/)
  const sentence = end < 0 ? text : text.slice(0, end + 1)
  return sentence.length > 160 ? `${sentence.slice(0, 157)}...` : sentence
}
