import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createUpdates, type Update } from '../../../src/mcp/updates.ts'
import { createMemoryDeputy } from '../../support/memory-deputy.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('updates', () => {
  const listen = async () => {
    const deputy = createMemoryDeputy()
    const updates = createUpdates(deputy)
    const told: Update[] = []
    const stop = updates.subscribe(update => told.push(update))
    const { job_id } = await deputy.submit({ task: 'true' }, 'test')
    return { deputy, updates, told, stop, job_id }
  }

  it('of a busy job are told a few times a second, not a thousand times', async () => {
    const { deputy, told, job_id } = await listen()
    for (let i = 0; i < 5000; i++) {
      deputy.print(job_id, 'x')
      if (i % 5 === 0) vi.advanceTimersByTime(1)
    }
    vi.advanceTimersByTime(1000)
    const log = told.filter(update => update.kind === 'resource' && update.uri.endsWith('/log'))
    expect(log.length).toBeGreaterThan(2)
    expect(log.length).toBeLessThan(8)
  })

  it('of the list are told once for new jobs, and not for old ones', async () => {
    const { deputy, told, job_id } = await listen()
    vi.advanceTimersByTime(5000)
    deputy.start(job_id)
    deputy.finish(job_id, { status: 'success' })
    vi.advanceTimersByTime(5000)
    expect(told.filter(update => update.kind === 'list')).toHaveLength(1)
  })

  it('end with the subscription, and leave no timer behind', async () => {
    const { deputy, told, stop, updates, job_id } = await listen()
    stop()
    deputy.start(job_id)
    vi.advanceTimersByTime(5000)
    expect(told).toEqual([])
    updates.close()
    expect(vi.getTimerCount()).toBe(0)
  })
})
