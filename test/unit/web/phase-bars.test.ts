import { expect, it } from 'vitest'
import { phaseBars } from '../../../web/job/phase-bars.ts'

const at = (seconds: number): string => new Date(seconds * 1000).toISOString()
const job = {
  status: 'success',
  created_at: at(0),
  started_at: null,
  completed_at: null,
  phases: {},
} as const

it('places the phases of a finished job one after the other', () => {
  const bars = phaseBars(
    {
      ...job,
      started_at: at(5),
      completed_at: at(9),
      phases: {
        provisioning: 3000,
        boot: 1000,
        unpack: 500,
        run: 4000,
        running: 4000,
        collect: 200,
        destroy: 100,
      },
    },
    0,
  )
  expect(bars).toEqual([
    { name: 'queued', ms: 2000, start: 0 },
    { name: 'provisioning', ms: 3000, start: 2000 },
    { name: 'boot', ms: 1000, start: 2000 },
    { name: 'unpack', ms: 500, start: 3000 },
    { name: 'running', ms: 4000, start: 5000 },
    { name: 'collect', ms: 200, start: 9000 },
    { name: 'destroy', ms: 100, start: 9200 },
  ])
})

it('lets the last phase of a job that is not over grow', () => {
  expect(phaseBars({ ...job, status: 'pending' }, 7000)).toEqual([{ name: 'queued', ms: 7000, start: 0 }])
  expect(phaseBars({ ...job, status: 'running', started_at: at(1) }, 7000).at(-1)).toEqual({
    name: 'running',
    ms: 6000,
    start: 1000,
  })
})
