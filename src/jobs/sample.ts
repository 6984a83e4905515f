import type { TerminalState } from './states.ts'

/** What happened in one minute, for charts. */
export interface Sample {
  /** Start of the minute: wall clock, in milliseconds. */
  readonly at: number
  readonly ended: Readonly<Record<TerminalState, number>>
  /** From submit to start, of the jobs that ended in this minute. Null when none did. */
  readonly wait: Quantiles | null
  readonly duration: Quantiles | null
  /** Jobs that hold a slot, by provider, at the end of the minute. */
  readonly slots: Readonly<Record<string, number>>
  readonly pending: number
}

/** In milliseconds. */
export interface Quantiles {
  readonly p50: number
  readonly p95: number
}

export const SAMPLE_MS = 60_000

export const minuteOf = (at: number): number => Math.floor(at / SAMPLE_MS) * SAMPLE_MS

/** The nearest rank. */
export const quantiles = (values: readonly number[]): Quantiles | null => {
  if (values.length === 0) return null
  const sorted = [...values].sort((a, b) => a - b)
  const rank = (part: number): number => sorted[Math.ceil(sorted.length * part) - 1] ?? 0
  return { p50: rank(0.5), p95: rank(0.95) }
}

/** A minute in which nothing happened is not stored. */
export const isQuiet = ({ ended, slots, pending }: Sample): boolean =>
  pending === 0 && Object.keys(slots).length === 0 && Object.values(ended).every(count => count === 0)
