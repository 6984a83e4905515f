import { expect, it } from 'vitest'
import { createCollection } from '../../../src/runner/collect.ts'
import { keepLimits } from '../../../src/runner/keep-limits.ts'

const collectionOf = (artifacts: string[]) =>
  createCollection({
    blobs: {} as Parameters<typeof createCollection>[0]['blobs'],
    jobId: 'j1',
    manifest: { artifacts },
    keep: keepLimits(),
    startedAt: () => 0,
  })

it('says why there are no artifacts when the machine could not list its files', () => {
  expect(collectionOf(['out/**']).result('the connection was cut').skippedArtifacts).toEqual([
    { path: '.', reason: 'the connection was cut' },
  ])
  expect(collectionOf([]).result('the connection was cut').skippedArtifacts).toEqual([])
})
