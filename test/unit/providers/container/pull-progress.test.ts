import { expect, it } from 'vitest'
import { createPullProgress } from '../../../../src/providers/container/pull-progress.ts'

it('reports a pull in layers and bytes, at most once a second', () => {
  const told: string[] = []
  const progress = createPullProgress('node:22', what => told.push(what))
  progress({ status: 'Pulling from library/node', id: '22' })
  progress({
    id: 'aaaaaaaaaaaa',
    status: 'Downloading',
    progressDetail: { current: 1_500_000, total: 4_000_000 },
  })
  progress({ id: 'bbbbbbbbbbbb', status: 'Already exists' })
  expect(told).toEqual(['pulling node:22', 'pulling node:22: 0 of 1 layers, 1.5 of 4.0 MB'])
})
