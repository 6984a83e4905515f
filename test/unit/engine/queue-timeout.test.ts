import { afterEach, describe, expect, it } from 'vitest'
import { AppError } from '../../../src/jobs/errors.ts'
import { removeDirectory, startEngine, type TestEngine, until } from '../../support/engine.ts'
import { createScriptedProvider, type ScriptedProvider } from '../../support/scripted-provider.ts'

const never = new AbortController().signal
const away = (): AppError => new AppError('unavailable', 'node n1 does not answer')

let engine: TestEngine
afterEach(async () => {
  await engine.close()
  removeDirectory(engine.directory)
})

/** A runtime whose only node is away until `back` is called. */
const startWithNodeAway = async (): Promise<{ provider: ScriptedProvider; back(): void }> => {
  const provider = createScriptedProvider('ssh')
  let isAway = true
  const { create } = provider
  provider.create = async request => {
    if (isAway) {
      provider.calls.push('away')
      throw away()
    }
    return create(request)
  }
  engine = await startEngine([provider])
  return {
    provider,
    back: () => {
      isAway = false
    },
  }
}

const submit = async (manifest: object): Promise<string> =>
  (await engine.deputy.submit({ task: 'true', runtime: 'ssh', ...manifest }, 'test')).job_id

describe('a job for a node that is unavailable', () => {
  it('waits, reports why, and runs when the node is back', async () => {
    const { provider, back } = await startWithNodeAway()
    const id = await submit({ requires: { node: 'n1' }, retries: 0 })
    await until(async () => (await engine.deputy.get(id)).progress !== null, 'it says what it waits for')
    const waiting = await engine.deputy.get(id)
    expect(waiting.progress).toContain('node n1 does not answer')
    await until(() => provider.calls.filter(call => call === 'away').length > 1, 'it is tried again')
    expect(['pending', 'provisioning']).toContain((await engine.deputy.get(id)).status)
    back()
    ;(await provider.started(id)).finish()
    const done = await engine.deputy.wait(id, { timeoutMs: 10_000, signal: never })
    expect(done).toMatchObject({ status: 'success', attempts: 1 })
  })

  it('fails on queue timeout and reports what it waited for', async () => {
    await startWithNodeAway()
    const id = await submit({ requires: { node: 'n1' }, queueTimeout: 1 })
    const done = await engine.deputy.wait(id, { timeoutMs: 15_000, signal: never })
    expect(done.status).toBe('failed')
    expect(done.error).toMatchObject({ code: 'machine', hint: expect.stringContaining('queueTimeout') })
    expect(done.error?.message).toMatch(/within 1 s.*node n1 does not answer/)
  })

  it('fails at once on an error that waiting cannot fix', async () => {
    const { provider } = await startWithNodeAway()
    provider.create = async () => {
      throw new AppError('denied', 'the key is not accepted')
    }
    const id = await submit({ requires: { node: 'n1' }, retries: 0 })
    const done = await engine.deputy.wait(id, { timeoutMs: 10_000, signal: never })
    expect(done.error?.message).toBe('the key is not accepted')
  })

  it('is retried as often as requested when it may run on another node', async () => {
    const { provider } = await startWithNodeAway()
    const id = await submit({ retries: 1 })
    const done = await engine.deputy.wait(id, { timeoutMs: 10_000, signal: never })
    expect(done.status).toBe('failed')
    expect(provider.calls.filter(call => call === 'away')).toHaveLength(2)
  })
})

describe('the queue timeout', () => {
  it('fails any pending job, and no job that has started', async () => {
    const provider = createScriptedProvider('sandbox', { limit: 1 })
    engine = await startEngine([provider])
    const [first, second] = await Promise.all(
      ['one', 'two'].map(task => engine.deputy.submit({ task, queueTimeout: 1 }, 'test')),
    )
    const done = await engine.deputy.wait(second!.job_id, { timeoutMs: 15_000, signal: never })
    expect(done.error?.message).toMatch(/did not start within 1 s/)
    expect((await engine.deputy.get(first!.job_id)).status).toBe('running')
  })

  it('does not fail a job that starts while the overdue jobs are read', async () => {
    const provider = createScriptedProvider('sandbox', { limit: 1 })
    const late: string[] = []
    engine = await startEngine([provider], {
      store: store => ({
        ...store,
        overdueJobs: async now => {
          const overdue = await store.overdueJobs(now)
          for (const { id } of overdue) {
            for (const run of provider.runs.values()) run.finish()
            await provider.started(id)
            late.push(id)
          }
          return overdue
        },
      }),
    })
    const first = await engine.deputy.submit({ task: 'one' }, 'test')
    await provider.started(first.job_id)
    const second = await engine.deputy.submit({ task: 'two', queueTimeout: 1 }, 'test')
    await until(() => late.length > 0, 'it is overdue and starts', 15_000)
    ;(await provider.started(second.job_id)).finish()
    const done = await engine.deputy.wait(second.job_id, { timeoutMs: 15_000, signal: never })
    expect(done.status).toBe('success')
  })
})
