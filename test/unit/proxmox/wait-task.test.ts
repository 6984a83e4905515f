import { describe, expect, it } from 'vitest'
import type { Request } from '../../../src/proxmox/api-request.ts'
import { waitTask } from '../../../src/proxmox/wait-task.ts'

const UPID = 'UPID:pve1:0000A1B2:00C3D4E5:66F7A8B9:qmclone:9000:deputy@pve!jobs:'

/** A task that is over after so many milliseconds, on a clock that only pauses move. */
const wait = async (lasts: number) => {
  let now = 0
  const pauses: number[] = []
  const clock = {
    now: () => now,
    sleep: async (ms: number) => {
      pauses.push(ms)
      now += ms
    },
  }
  const answer = () => (now >= lasts ? { status: 'stopped', exitstatus: 'OK' } : { status: 'running' })
  const request: Request = async <T>() => answer() as T
  await waitTask({ request, clock }, UPID)
  return { pauses, late: now - lasts }
}

describe('the wait for a task', () => {
  it('is over at once for one that was done at once', async () => {
    expect((await wait(0)).pauses).toEqual([])
  })

  it.each([1, 10, 50])('is hardly longer than one of %i ms', async lasts => {
    expect((await wait(lasts)).late).toBeLessThanOrEqual(lasts + 2)
  })

  it('asks a long one less and less, and never seldom', async () => {
    const { pauses, late } = await wait(60_000)
    expect(pauses.length).toBeLessThan(75)
    expect(late).toBeLessThanOrEqual(1500)
    expect(Math.max(...pauses)).toBeLessThanOrEqual(1500)
  })
})
