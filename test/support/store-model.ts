import fc from 'fast-check'
import { expect } from 'vitest'
import { newId } from '../../src/jobs/ids.ts'
import { parseManifest } from '../../src/jobs/manifest.ts'
import { canMove, isTerminal, type JobState, STATES } from '../../src/jobs/states.ts'
import type { Store } from '../../src/ports.ts'

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

/**
 * Runs random operations in random order and compares the store with the model. `open` returns the store of a number,
 * with the jobs that it had when it was closed.
 */
export const agreesWithModel = async (
  open: (run: number) => Promise<Store>,
  numRuns: number,
): Promise<void> => {
  let runs = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async steps => {
      const run = runs++
      const model = new Model()
      const order: string[] = []
      let store = await open(run)
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
          store = await open(run)
        }
        expect(await store.counts()).toEqual(model.counts())
      }
      for (const [id, state] of model.states) expect((await store.getJob(id))?.state).toBe(state)
      await store.close()
    }),
    { numRuns },
  )
}
