/** Numbers that follow from a seed, so that a schedule of faults can be had again. */
export interface Random {
  /** At least `low`, less than `high`. */
  between(low: number, high: number): number
  /** Both ends included. */
  integer(low: number, high: number): number
  chance(share: number): boolean
  pick<T>(list: readonly T[]): T
  /** By weight. */
  weighted<T extends { readonly weight: number }>(list: readonly T[]): T
  /** Another generator that follows from this one: what it is used for does not disturb the order here. */
  fork(): Random
}

export const createRandom = (seed: number): Random => {
  let state = seed >>> 0
  /** mulberry32 */
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)]!
  return {
    between: (low, high) => low + next() * (high - low),
    integer: (low, high) => low + Math.floor(next() * (high - low + 1)),
    chance: share => next() < share,
    pick,
    weighted: list => {
      let left = next() * list.reduce((sum, { weight }) => sum + weight, 0)
      for (const one of list) {
        left -= one.weight
        if (left < 0) return one
      }
      return pick(list)
    },
    fork: () => createRandom(Math.floor(next() * 2 ** 32)),
  }
}
