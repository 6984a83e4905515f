import { expect, it } from 'vitest'
import { createMetrics } from '../../../src/observability/metrics.ts'

it('writes counters, gauges and histograms as Prometheus reads them', async () => {
  const metrics = createMetrics()
  const counter = metrics.counter('calls_total', 'Calls.')
  const histogram = metrics.histogram('wait_seconds', 'Waits.', [0.1, 1])
  metrics.gauge('depth', 'Depth.', () => [{ value: 3 }, { labels: { of: 'a' }, value: 4 }])
  counter.add({ result: 'ok' })
  counter.add({ result: 'ok' }, 2)
  counter.add()
  for (const seconds of [0.05, 0.1, 0.5, 2]) histogram.observe(seconds, { phase: 'run' })
  expect(await metrics.render()).toBe(
    [
      '# HELP calls_total Calls.',
      '# TYPE calls_total counter',
      'calls_total{result="ok"} 3',
      'calls_total 1',
      '# HELP wait_seconds Waits.',
      '# TYPE wait_seconds histogram',
      'wait_seconds_bucket{phase="run",le="0.1"} 2',
      'wait_seconds_bucket{phase="run",le="1"} 3',
      'wait_seconds_bucket{phase="run",le="+Inf"} 4',
      'wait_seconds_sum{phase="run"} 2.65',
      'wait_seconds_count{phase="run"} 4',
      '# HELP depth Depth.',
      '# TYPE depth gauge',
      'depth 3',
      'depth{of="a"} 4',
      '',
    ].join('\n'),
  )
})

it('escapes what a label may not hold', async () => {
  const metrics = createMetrics()
  metrics.counter('c_total', 'C.').add({ name: 'a"b\\c\nd' })
  expect(await metrics.render()).toContain('c_total{name="a\\"b\\\\c\\nd"} 1')
})

it('refuses to register a name twice', () => {
  const metrics = createMetrics()
  metrics.counter('c_total', 'C.')
  expect(() => metrics.histogram('c_total', 'C.')).toThrow(/c_total/)
})
