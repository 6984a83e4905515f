/** The most similar candidate, or undefined when none is close. */
export const nearest = (word: string, candidates: readonly string[]): string | undefined => {
  const wanted = fold(word)
  let best: string | undefined
  let bestDistance = Math.max(1, Math.floor(wanted.length / 3)) + 1
  for (const candidate of candidates) {
    const distance = editDistance(wanted, fold(candidate))
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

export const didYouMean = (word: string, candidates: readonly string[]): string => {
  const guess = nearest(word, candidates)
  return guess === undefined ? '' : `, did you mean '${guess}'?`
}

/** `agent_type`, `agent-type` and `agentType` count as the same word. */
const fold = (text: string): string => text.toLowerCase().replace(/[_-]/g, '').slice(0, 64)

/** Insertions, deletions, substitutions and swapped neighbours cost one each. */
const editDistance = (a: string, b: string): number => {
  let beforePrevious: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const substitution = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swap = swapped ? beforePrevious[j - 2]! + 1 : Number.POSITIVE_INFINITY
      row.push(Math.min(previous[j]! + 1, row[j - 1]! + 1, substitution, swap))
    }
    beforePrevious = previous
    previous = row
  }
  return previous[b.length]!
}
