import { expect, it } from 'vitest'
import type { SampleView } from '../../../src/client/daemon-info.ts'
import { RANGES, stepsOf } from '../../../web/overview/history.ts'

const NOW = Date.parse('2026-01-01T12:00:30Z')

const minute = (at: string, more: Partial<SampleView>): SampleView => ({
  at,
  ended: {},
  wait_ms: null,
  duration_ms: null,
  slots: {},
  pending: 0,
  ...more,
})

it('fills the quiet minutes of an hour', () => {
  const samples = [minute('2026-01-01T11:30:00Z', { ended: { success: 2, timeout: 1 }, slots: { host: 3 } })]
  const steps = stepsOf(samples, RANGES[0]!, NOW)
  expect(steps).toHaveLength(60)
  expect(steps.at(-1)).toMatchObject({
    at: Date.parse('2026-01-01T12:00:00Z') / 1000,
    succeeded: 0,
    slots: {},
  })
  expect(steps[29]).toMatchObject({ succeeded: 2, failed: 1, slots: { host: 3 } })
})

it('combines the minutes of a step', () => {
  const samples = [
    minute('2026-01-01T11:51:00Z', {
      ended: { success: 3 },
      duration_ms: { p50: 1000, p95: 9000 },
      slots: { host: 1 },
    }),
    minute('2026-01-01T11:59:00Z', {
      ended: { failed: 1 },
      duration_ms: { p50: 5000, p95: 5000 },
      slots: { host: 2 },
    }),
  ]
  const steps = stepsOf(samples, RANGES[1]!, NOW)
  expect(steps).toHaveLength(144)
  expect(steps.at(-2)).toMatchObject({
    succeeded: 3,
    failed: 1,
    duration: [2, 9],
    wait: [null, null],
    slots: { host: 2 },
  })
})
