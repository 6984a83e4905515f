import { describe, expectTypeOf, it } from 'vitest'
import type * as served from '../../../src/engine/deputy.ts'
import { STATES } from '../../../src/jobs/states.ts'
import * as page from '../../../web/views.ts'

// The page is compiled for browsers, apart from the rest; here its idea of the answers meets what is served.
describe('what the web page knows of the answers', () => {
  it('is part of what is served', () => {
    expectTypeOf<served.JobSummary>().toExtend<page.Summary>()
    expectTypeOf<served.JobView>().toExtend<page.Job>()
    expectTypeOf<served.OutputPage>().toExtend<page.OutputPage>()
  })

  it('has the states in the order in which a job goes through them', ({ expect }) => {
    expect([...page.STATES].sort()).toEqual([...STATES].sort())
    for (const state of STATES)
      expect(page.isOver(state)).toBe(!['pending', 'provisioning', 'running'].includes(state))
  })
})
