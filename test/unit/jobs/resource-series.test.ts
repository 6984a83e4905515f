import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createResourceSeries } from '../../../src/jobs/resource-series.ts'

describe('the series of a job', () => {
  it('stays small, keeps the peak and the end, and never runs backwards', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ cpuMs: fc.nat(10_000), memory: fc.nat(1_000_000) }), {
          minLength: 1,
          maxLength: 500,
        }),
        uses => {
          const series = createResourceSeries(100)
          uses.forEach((use, index) => {
            series.add({ at: index * 100, ...use })
          })
          const { samples } = series
          expect(samples.length).toBeLessThanOrEqual(60)
          expect(Math.max(...samples.map(({ memory }) => memory))).toBe(
            Math.max(...uses.map(({ memory }) => memory)),
          )
          expect(samples.at(-1)).toMatchObject({
            at: (uses.length - 1) * 100,
            cpuMs: Math.max(...uses.map(({ cpuMs }) => cpuMs)),
          })
          for (const [index, sample] of samples.entries()) {
            const before = samples[index - 1] ?? { at: -1, cpuMs: 0 }
            expect(sample.at).toBeGreaterThan(before.at)
            expect(sample.cpuMs).toBeGreaterThanOrEqual(before.cpuMs)
          }
        },
      ),
    )
  })

  it('measures half as often each time it is full', () => {
    const series = createResourceSeries(100)
    for (let at = 0; at < 61; at++) series.add({ at, cpuMs: at, memory: 1 })
    expect(series.periodMs).toBe(200)
    for (let at = 61; at < 200; at++) series.add({ at, cpuMs: at, memory: 1 })
    expect(series.periodMs).toBeGreaterThan(400)
  })
})
