import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../../src/jobs/ids.ts'
import { parseManifest } from '../../../src/jobs/manifest.ts'
import { canMove, isTerminal, type JobState, STATES } from '../../../src/jobs/states.ts'
import type { Store } from '../../../src/ports.ts'
import { openStore } from '../../../src/store/sqlite-store.ts'

/** The state machine in memory, as plain as it can be: the store must never disagree with it. */
class Model {
  readonly states = new Map<string, JobState>()

  submit(id: string): void {
    this.states.set(id, 'pending')
  }

  move(id: string, to: JobState): boolean {
    const from = this.states.get(id)
    if (from === undefined || !canMove(from, to)) return false
    this.states.set(id, to)
    return true
  }

  counts(): Record<JobState, number> {
    const counts = Object.fromEntries(STATES.map(state => [state, 0])) as Record<JobState, number>
    for (const state of this.states.values()) counts[state] += 1
    return counts
  }
}

let directory: string

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'deputy-model-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const newJob = (id: string) => ({
  id,
  manifest: parseManifest({ task: 'x' }),
  manifestHash: 'h',
  title: 'x',
  runtime: 'sandbox',
  origin: 'test',
  createdAt: 1,
  timeoutSeconds: 60,
})

type Step =
  | { kind: 'submit' }
  | { kind: 'move'; job: number; to: JobState }
  | { kind: 'claim' }
  | { kind: 'delete'; job: number }
  | { kind: 'reopen' }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Step>({ kind: 'submit' }) },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('move' as const),
      job: fc.nat(20),
      to: fc.constantFrom(...STATES),
    }),
  },
  { weight: 3, arbitrary: fc.constant<Step>({ kind: 'claim' }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('delete' as const), job: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: 'reopen' }) },
)

describe('the state machine in the store', () => {
  it('agrees with the model for random operations in random order', async () => {
    let run = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async steps => {
        const path = join(directory, `${run++}.db`)
        const model = new Model()
        const order: string[] = []
        let store: Store = openStore(path)
        for (const one of steps) {
          const id = 'job' in one ? (order[one.job % Math.max(1, order.length)] ?? 'none') : ''
          if (one.kind === 'submit') {
            const fresh = newId()
            order.push(fresh)
            model.submit(fresh)
            expect((await store.insertJob(newJob(fresh))).created).toBe(true)
          } else if (one.kind === 'move') {
            const moved = await store.move(id, one.to, isTerminal(one.to) ? { completedAt: 2 } : {}, {
              at: 1,
              data: {},
            })
            expect(moved).toBe(model.move(id, one.to))
          } else if (one.kind === 'claim') {
            const next = order.find(job => model.states.get(job) === 'pending')
            const claimed = await store.claim({ runtime: 'sandbox', machineId: newId(), now: 10 })
            expect(claimed?.job.id).toBe(next)
            if (next !== undefined) model.move(next, 'provisioning')
          } else if (one.kind === 'delete') {
            const state = model.states.get(id)
            const may = state !== undefined && isTerminal(state)
            expect((await store.deleteJob(id)) !== undefined).toBe(may)
            if (may) model.states.delete(id)
          } else {
            await store.close()
            store = openStore(path)
          }
          expect(await store.counts()).toEqual(model.counts())
        }
        for (const [id, state] of model.states) expect((await store.getJob(id))?.state).toBe(state)
        await store.close()
      }),
      { numRuns: 60 },
    )
  })
})
