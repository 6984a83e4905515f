import type { SampleView } from '../../src/client/daemon-info.ts'

/** Equal steps of time, each with what happened in its minutes. */
export interface Step {
  /** Seconds since 1970, as uPlot counts. */
  readonly at: number
  readonly succeeded: number
  readonly failed: number
  readonly wait: readonly [p50: number | null, p95: number | null]
  readonly duration: readonly [p50: number | null, p95: number | null]
  readonly slots: Readonly<Record<string, number>>
}

export interface Range {
  readonly name: string
  readonly hours: number
  readonly stepMinutes: number
}

export const RANGES: readonly Range[] = [
  { name: '1 h', hours: 1, stepMinutes: 1 },
  { name: '24 h', hours: 24, stepMinutes: 10 },
  { name: '7 d', hours: 168, stepMinutes: 60 },
]

/** Puts minutes into steps. The minutes that the daemon left out were quiet. */
export const stepsOf = (samples: readonly SampleView[], range: Range, now: number): Step[] => {
  const stepMs = range.stepMinutes * 60_000
  const last = Math.floor(now / stepMs)
  const first = last - (range.hours * 60) / range.stepMinutes + 1
  const groups = new Map<number, SampleView[]>()
  for (const sample of samples) {
    const index = Math.floor(Date.parse(sample.at) / stepMs)
    groups.set(index, [...(groups.get(index) ?? []), sample])
  }
  return Array.from({ length: last - first + 1 }, (_, at) =>
    stepOf((first + at) * (stepMs / 1000), groups.get(first + at) ?? []),
  )
}

const stepOf = (at: number, minutes: readonly SampleView[]): Step => {
  const sum = (...states: readonly string[]): number =>
    minutes.reduce(
      (total, { ended }) => total + states.reduce((one, state) => one + (ended[state] ?? 0), 0),
      0,
    )
  const slots: Record<string, number> = {}
  for (const minute of minutes)
    for (const [provider, count] of Object.entries(minute.slots))
      slots[provider] = Math.max(slots[provider] ?? 0, count)
  return {
    at,
    succeeded: sum('success'),
    failed: sum('failed', 'timeout'),
    wait: combined(minutes, 'wait_ms'),
    duration: combined(minutes, 'duration_ms'),
    slots,
  }
}

/** The quantiles of several minutes are not known exactly: the median is weighted by jobs, the p95 is the worst. */
const combined = (
  minutes: readonly SampleView[],
  key: 'wait_ms' | 'duration_ms',
): readonly [number | null, number | null] => {
  let jobs = 0
  let weighted = 0
  let worst = 0
  for (const minute of minutes) {
    const quantiles = minute[key]
    if (quantiles === null) continue
    const count = Object.values(minute.ended).reduce((total, one) => total + one, 0)
    jobs += count
    weighted += quantiles.p50 * count
    worst = Math.max(worst, quantiles.p95)
  }
  return jobs === 0 ? [null, null] : [weighted / jobs / 1000, worst / 1000]
}
