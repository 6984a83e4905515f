import { describe, expect, it } from 'vitest'
import { createChangeNotifier } from '../../../src/engine/change-notifier.ts'
import type { OutputPage } from '../../../src/engine/deputy.ts'
import type { EngineContext } from '../../../src/engine/engine-context.ts'
import { followEvents, followOutput, waitForStatus } from '../../../src/engine/follow-job.ts'
import { outputOperations } from '../../../src/engine/read-operations.ts'
import type { Job, JobEvent } from '../../../src/jobs/job.ts'
import type { Store } from '../../../src/ports.ts'

const { signal } = new AbortController()
const unknown = new Error('no such job')

/** A notifier that knows how many of its listeners are open. */
const countedNotifier = () => {
  const notifier = createChangeNotifier()
  let open = 0
  return {
    ...notifier,
    open: () => open,
    listen: (jobId: string | undefined) => {
      open++
      const listener = notifier.listen(jobId)
      return {
        ...listener,
        close: () => {
          open--
          listener.close()
        },
      }
    },
  }
}

const page = (done: boolean): OutputPage => ({
  job_id: 'j1',
  status: done ? 'success' : 'running',
  pieces: [{ offset: 0, data: Buffer.from('x'), stream: 'stdout', at: 0 }] as OutputPage['pieces'],
  next_cursor: 1,
  done,
})

describe('a follower leaves no listener behind', () => {
  it('of output that ends, that is left, and that cannot be read', async () => {
    const changes = countedNotifier()
    const follow = (read: () => Promise<OutputPage>) =>
      followOutput(changes, read, { id: 'j1', cursor: 0, signal })
    for await (const { done } of follow(async () => page(true))) expect(done).toBe(true)
    for await (const _ of follow(async () => page(false))) break
    await expect(follow(() => Promise.reject(unknown)).next()).rejects.toBe(unknown)
    expect(changes.open()).toBe(0)
  })

  it('of events that end, that are left, and that cannot be read', async () => {
    const changes = countedNotifier()
    const event = { seq: 1 } as JobEvent
    const store = (events: () => Promise<JobEvent[]>) => ({ events }) as Partial<Store> as Store
    const follow = (read: () => Promise<JobEvent[]>) =>
      followEvents(changes, store(read), { id: 'j1', signal }, async () => true)
    const pages = [[event], []]
    for await (const { seq } of follow(async () => pages.shift() ?? [])) expect(seq).toBe(1)
    for await (const _ of follow(async () => [event])) break
    await expect(follow(() => Promise.reject(unknown)).next()).rejects.toBe(unknown)
    expect(changes.open()).toBe(0)
  })

  it('of a status that is reached, that does not come in time, and of a job that is deleted meanwhile', async () => {
    const changes = countedNotifier()
    const running = { id: 'j1', state: 'running' } as Job
    const states = [running, running, { ...running, state: 'success' } as Job]
    const reached = waitForStatus(changes, async () => states.shift()!, { timeoutMs: 60_000, signal })
    await expect.poll(() => states.length).toBe(1)
    changes.emit({ jobId: 'j1', kind: 'state' })
    expect((await reached).state).toBe('success')
    const wait = { timeoutMs: 1, signal }
    expect((await waitForStatus(changes, async () => running, wait)).state).toBe('running')
    const reads = [async () => running, () => Promise.reject(unknown)]
    await expect(waitForStatus(changes, () => reads.shift()!(), wait)).rejects.toBe(unknown)
    expect(changes.open()).toBe(0)
  })

  it('of the output of a job that does not exist', async () => {
    const changes = countedNotifier()
    const context = { changes, store: {} as Store } as Partial<EngineContext> as EngineContext
    const lookup = {
      getJob: () => Promise.reject(unknown),
      view: () => Promise.reject(unknown),
      whereIs: () => '',
    }
    await expect(outputOperations(context, lookup).output('j1', { signal })).rejects.toBe(unknown)
    expect(changes.open()).toBe(0)
  })
})

describe('a listener', () => {
  it('does not miss a change between the read and the wait, nor a second one', async () => {
    const changes = createChangeNotifier()
    const listener = changes.listen('j1')
    changes.emit({ jobId: 'j1', kind: 'state' })
    await listener.wait(60_000, signal)
    const second = listener.wait(60_000, signal)
    changes.emit({ jobId: 'j1', kind: 'state' })
    await second
    listener.close()
  })

  it('is not woken by another job', async () => {
    const changes = createChangeNotifier()
    const listener = changes.listen('j1')
    let isAwake = false
    const waiting = listener.wait(60_000, signal).then(() => {
      isAwake = true
    })
    changes.emit({ jobId: 'j2', kind: 'state' })
    await new Promise(resolve => setImmediate(resolve))
    expect(isAwake).toBe(false)
    changes.emit({ jobId: 'j1', kind: 'state' })
    await waiting
  })
})
