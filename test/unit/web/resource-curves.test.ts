import { expect, it } from 'vitest'
import { cpuCurve, memoryCurve, pathOf } from '../../../web/job/resource-curves.ts'

const sample = (seconds: number, cpu_seconds: number, memory_bytes: number) => ({
  seconds,
  cpu_seconds,
  memory_bytes,
})

it('shows how many cores were busy, not the sum of CPU time', () => {
  const samples = [sample(1, 0.5, 10), sample(2, 2.5, 30), sample(2, 2.5, 30), sample(4, 2.5, 20)]
  expect(cpuCurve(samples).map(({ value }) => value)).toEqual([0.5, 2, 0, 0])
  expect(memoryCurve(samples).map(({ value }) => value)).toEqual([10, 30, 30, 20])
})

it('draws the area below the points', () => {
  expect(pathOf([], 1, 100, 40)).toBe('')
  const points = [
    { seconds: 1, value: 0.5 },
    { seconds: 2, value: 1 },
  ]
  expect(pathOf(points, 1, 100, 40)).toBe('M0 40L0.0 20.0L50.0 20.0L100.0 0.0L100 40Z')
})
