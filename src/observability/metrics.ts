/** Metrics in the Prometheus text format: counters, histograms, and gauges whose values are read at each scrape. */
export interface Metrics {
  counter(name: string, help: string): Counter
  histogram(name: string, help: string, buckets?: readonly number[]): Histogram
  /** A total that something else counts; its value is read at each scrape. */
  total(name: string, help: string, read: () => number): void
  gauge(name: string, help: string, read: () => GaugeSample[] | Promise<GaugeSample[]>): void
  render(): Promise<string>
}

type Labels = Readonly<Record<string, string>>

interface Counter {
  add(labels?: Labels, by?: number): void
}

interface Histogram {
  observe(seconds: number, labels?: Labels): void
}

interface GaugeSample {
  readonly labels?: Labels
  readonly value: number
}

/** In seconds, from a database read to a job of a day. */
const BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 1800, 7200, 86_400]

export const createMetrics = (): Metrics => {
  const families = new Map<string, () => Promise<string[]>>()
  const register = (name: string, help: string, type: string, samples: () => Promise<string[]>): void => {
    if (families.has(name)) throw new Error(`the metric ${name} is registered twice`)
    families.set(name, async () => [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...(await samples())])
  }

  return {
    counter(name, help) {
      const values = new Map<string, number>()
      register(name, help, 'counter', async () => [...values].map(([key, value]) => `${name}${key} ${value}`))
      return {
        add: (labels, by = 1) => {
          const key = labelText(labels)
          values.set(key, (values.get(key) ?? 0) + by)
        },
      }
    },

    histogram(name, help, buckets = BUCKETS) {
      const series = new Map<string, Series>()
      register(name, help, 'histogram', async () =>
        [...series.values()].flatMap(entry => histogramLines(name, buckets, entry)),
      )
      return {
        observe: (seconds, labels = {}) => {
          const key = labelText(labels)
          const entry = series.get(key) ?? { labels, counts: buckets.map(() => 0), sum: 0, count: 0 }
          series.set(key, entry)
          const bucket = buckets.findIndex(limit => seconds <= limit)
          if (bucket !== -1) entry.counts[bucket]! += 1
          entry.sum += seconds
          entry.count += 1
        },
      }
    },

    total: (name, help, read) => register(name, help, 'counter', async () => [`${name} ${read()}`]),

    gauge: (name, help, read) =>
      register(name, help, 'gauge', async () =>
        (await read()).map(({ labels, value }) => `${name}${labelText(labels)} ${value}`),
      ),

    render: async () =>
      `${(await Promise.all([...families.values()].map(lines => lines()))).flat().join('\n')}\n`,
  }
}

interface Series {
  readonly labels: Labels
  readonly counts: number[]
  sum: number
  count: number
}

const histogramLines = (name: string, buckets: readonly number[], entry: Series): string[] => {
  const { labels, counts, sum, count } = entry
  let below = 0
  const lines = buckets.map((limit, index) => {
    below += counts[index]!
    return `${name}_bucket${labelText({ ...labels, le: String(limit) })} ${below}`
  })
  return [
    ...lines,
    `${name}_bucket${labelText({ ...labels, le: '+Inf' })} ${count}`,
    `${name}_sum${labelText(labels)} ${sum}`,
    `${name}_count${labelText(labels)} ${count}`,
  ]
}

const labelText = (labels: Labels = {}): string => {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

const escapeLabel = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
