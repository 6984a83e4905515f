/** One measured number beside what it is compared with, from the same run on the same machine. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: string
  /** Half of the samples of a median lie between these. */
  readonly spread?: readonly [number, number]
  /** What nobody could beat here (a bare process, a bare socket), or a peer. */
  readonly floor?: { readonly name: string; readonly value: number }
  /** What we promise: at most or at least `limit`, of the value or of its ratio to the floor. */
  readonly target?: { readonly of: 'value' | 'ratio'; readonly at: 'most' | 'least'; readonly limit: number }
}

/** A group of figures; runs alone and leaves nothing behind. */
export interface Bench {
  readonly name: string
  /** Part of `--quick`: it promises ratios to something that is measured by turns with it. */
  readonly quick?: boolean
  /** With `quick` it takes seconds, and gives only what its promises need. */
  run(quick: boolean): Promise<Figure[]>
}

export const ratioOf = (figure: Figure): number | undefined =>
  figure.floor === undefined ? undefined : figure.value / figure.floor.value

export const isMet = (figure: Figure): boolean | undefined => {
  const { target } = figure
  if (target === undefined) return undefined
  const measured = target.of === 'value' ? figure.value : (ratioOf(figure) ?? Number.NaN)
  return target.at === 'most' ? measured <= target.limit : measured >= target.limit
}

/**
 * Twice the promised ratio: what misses that on a busy computer has lost a factor. Counts, which have no unit, promise
 * what they always do; times and rates without something beside them promise nothing here.
 */
export const relaxed = (figure: Figure): Figure => {
  const { target, ...rest } = figure
  if (target === undefined || (target.of === 'value' && figure.unit === '')) return figure
  if (target.of === 'value') return rest
  return { ...rest, target: { ...target, limit: target.at === 'most' ? target.limit * 2 : target.limit / 2 } }
}

/** The value below which a share of all samples lies. */
export const percentile = (samples: readonly number[], share: number): number => {
  const sorted = [...samples].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

/** The median of samples, with what half of them lie between. */
export const medianOf = (samples: readonly number[]): Required<Pick<Figure, 'value' | 'spread'>> => ({
  value: percentile(samples, 0.5),
  spread: [percentile(samples, 0.25), percentile(samples, 0.75)],
})
