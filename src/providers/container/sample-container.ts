import { valueAt } from '../../jobs/records.ts'
import { createResourceSeries, type ResourceSample } from '../../jobs/resource-series.ts'
import type { EngineClient } from './engine-client.ts'

const FIRST_PERIOD_MS = 1000

interface ContainerSampling {
  readonly samples: readonly ResourceSample[]
  end(): void
}

interface SamplingOptions {
  readonly client: Pick<EngineClient, 'json'>
  readonly container: string
  /** Jobs before this one have used the container. */
  readonly isKept: boolean
  /** Milliseconds that the job has run already, under an earlier daemon. */
  readonly ranMs: number
  readonly signal: AbortSignal
}

/**
 * Asks the engine what a container uses, until `end` is called. A job that ends within a second has no samples, and an
 * engine that does not answer leaves a gap.
 */
export const sampleContainer = (options: SamplingOptions): ContainerSampling => {
  const { client, container, isKept, ranMs, signal } = options
  const series = createResourceSeries(FIRST_PERIOD_MS)
  const begun = performance.now() - ranMs
  let before = isKept ? undefined : 0
  let hasEnded = false
  let timer: NodeJS.Timeout | undefined
  const sample = async (): Promise<void> => {
    const use = await readUse(client, container, signal).catch(() => undefined)
    if (use === undefined || hasEnded) return
    before ??= use.cpuMs
    series.add({ at: performance.now() - begun, cpuMs: use.cpuMs - before, memory: use.memory })
  }
  const next = (): void => {
    if (hasEnded || signal.aborted) return
    timer = setTimeout(() => void sample().then(next), series.periodMs)
    timer.unref()
  }
  if (isKept) void sample().then(next)
  else next()
  return {
    get samples() {
      return series.samples
    },
    end: () => {
      hasEnded = true
      clearTimeout(timer)
    },
  }
}

const readUse = async (
  client: Pick<EngineClient, 'json'>,
  container: string,
  signal: AbortSignal,
): Promise<Pick<ResourceSample, 'cpuMs' | 'memory'> | undefined> => {
  const stats = await client.json({
    path: `/containers/${container}/stats`,
    query: { stream: 'false', 'one-shot': 'true' },
    signal,
    timeoutMs: 10_000,
  })
  const number = (...path: string[]): number | undefined => {
    const value = valueAt(stats, path)
    return typeof value === 'number' ? value : undefined
  }
  const cpu = number('cpu_stats', 'cpu_usage', 'total_usage')
  const memory = number('memory_stats', 'usage')
  if (cpu === undefined || memory === undefined) return undefined
  // The kernel frees the cache of files when somebody needs the memory.
  const cache =
    number('memory_stats', 'stats', 'inactive_file') ??
    number('memory_stats', 'stats', 'total_inactive_file') ??
    0
  return { cpuMs: cpu / 1e6, memory: Math.max(0, memory - cache) }
}
