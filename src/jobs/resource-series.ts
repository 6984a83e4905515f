/** What a job had used at one moment. */
export interface ResourceSample {
  /** Milliseconds since the command started. */
  readonly at: number
  /** CPU time of all its processes so far, in milliseconds. */
  readonly cpuMs: number
  /** Memory of its processes, in bytes, without files. */
  readonly memory: number
}

const MAX_SAMPLES = 60

/**
 * The use of CPU and memory over the time of a job. It stays small however long the job runs: when it is full, every
 * second sample goes and the period doubles.
 */
export const createResourceSeries = (firstPeriodMs: number) => {
  let samples: ResourceSample[] = []
  let periodMs = firstPeriodMs
  return {
    /** When to measure next. */
    get periodMs(): number {
      return periodMs
    },
    get samples(): readonly ResourceSample[] {
      return samples
    },
    add: ({ at, cpuMs, memory }: ResourceSample): void => {
      const last = samples.at(-1)
      // The CPU time of processes that have just ended may be missing for a moment.
      samples.push({ at: Math.round(at), cpuMs: Math.round(Math.max(cpuMs, last?.cpuMs ?? 0)), memory })
      if (samples.length <= MAX_SAMPLES) return
      samples = halve(samples)
      periodMs *= 2
    },
  }
}

/** Joins each two samples: the later time and CPU time, and the larger memory, so that a peak stays. */
const halve = (samples: readonly ResourceSample[]): ResourceSample[] =>
  samples.flatMap((sample, index) => {
    const before = samples[index - 1]
    if (index % 2 === 0 && index < samples.length - 1) return []
    if (index % 2 === 0 || before === undefined) return [sample]
    return [{ ...sample, memory: Math.max(before.memory, sample.memory) }]
  })
