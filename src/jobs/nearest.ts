/** The candidate a person most likely meant, or undefined when nothing is close. */
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

/** `agent_type`, `agent-type` and `agentType` are the same word to the person who typed it. */
const fold = (text: string): string => text.toLowerCase().replace(/[_-]/g, '').slice(0, 64)

const editDistance = (a: string, b: string): number => {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const substitution = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(previous[j]! + 1, row[j - 1]! + 1, substitution))
    }
    previous = row
  }
  return previous[b.length]!
}
