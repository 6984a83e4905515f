import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { EngineClient } from '../../../../src/providers/container/engine-client.ts'
import { sampleContainer } from '../../../../src/providers/container/sample-container.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** An engine that answers with these, one after the other, then with the last one. */
const engine = (...answers: unknown[]) => {
  const asked: unknown[] = []
  const client: Pick<EngineClient, 'json'> = {
    json: async ({ path }) => {
      asked.push(path)
      const answer = answers.length > 1 ? answers.shift() : answers[0]
      if (answer instanceof Error) throw answer
      return answer
    },
  }
  return { client, asked }
}

const stats = (cpuMs: number, usage: number, inactive_file = 0) => ({
  cpu_stats: { cpu_usage: { total_usage: cpuMs * 1e6 } },
  memory_stats: { usage, stats: { inactive_file } },
})

const start = (client: Pick<EngineClient, 'json'>, isKept = false) =>
  sampleContainer({ client, container: 'c', isKept, ranMs: 0, signal: new AbortController().signal })

it('asks every second, without the cache of files, and survives an engine that does not answer', async () => {
  const { client, asked } = engine(stats(100, 50, 20), new Error('gone'), {}, stats(900, 70))
  const sampling = start(client)
  await vi.advanceTimersByTimeAsync(4500)
  expect(sampling.samples.map(({ cpuMs, memory }) => [cpuMs, memory])).toEqual([
    [100, 30],
    [900, 70],
  ])
  sampling.end()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(asked).toEqual(Array(4).fill('/containers/c/stats'))
})

it('does not count what earlier jobs in a kept container have used', async () => {
  const { client } = engine(stats(5000, 50), stats(5400, 50))
  const sampling = start(client, true)
  await vi.advanceTimersByTimeAsync(1500)
  expect(sampling.samples.map(({ cpuMs }) => cpuMs)).toEqual([0, 400])
  sampling.end()
})
