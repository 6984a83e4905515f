import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { newId } from '../../../src/jobs/ids.ts'
import { parseManifest } from '../../../src/jobs/manifest.ts'
import { openStore } from '../../../src/store/sqlite-store.ts'

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('submit' as const),
      priority: fc.integer({ min: -1, max: 1 }),
      runtime: fc.constantFrom('sandbox', 'microvm'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('claim' as const),
      runtime: fc.constantFrom('sandbox', 'microvm'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cancel' as const), job: fc.nat(30) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('retry' as const), job: fc.nat(30) }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'reopen' as const }) },
)

it('returns the queue position that counting in SQL would return, after random operations', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'deputy-queue-'))
  let run = 0
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async steps => {
        const path = join(directory, `${run++}.db`)
        let store = openStore(path)
        const ids: string[] = []
        for (const one of steps) {
          const id = 'job' in one ? (ids[one.job % Math.max(1, ids.length)] ?? 'none') : newId()
          if (one.kind === 'submit') {
            ids.push(id)
            const { job, position } = await store.insertJob({
              id,
              manifest: parseManifest({ task: 'x', priority: one.priority }),
              manifestHash: 'h',
              title: 'x',
              runtime: one.runtime,
              origin: 'test',
              createdAt: 1,
              timeoutSeconds: 60,
            })
            expect(position).toBe(await store.queuePosition(job))
          } else if (one.kind === 'claim')
            await store.claim({ runtime: one.runtime, machineId: newId(), now: 10 })
          else if (one.kind === 'cancel')
            await store.move(id, 'cancelled', { completedAt: 2 }, { at: 1, data: {} })
          else if (one.kind === 'retry') await store.move(id, 'pending', {}, { at: 1, data: {} })
          else {
            await store.close()
            store = openStore(path)
          }
        }
        await store.close()
      }),
      { numRuns: 60 },
    )
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})
