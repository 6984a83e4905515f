import { describe, expect, it } from 'vitest'
import type { Config } from '../../../src/config/schema.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import { AppError } from '../../../src/jobs/errors.ts'
import { operatorError } from '../../../src/jobs/operator-error.ts'
import type { Outcome } from '../../../src/ports.ts'
import { begin } from '../../support/begin-engine.ts'
import { createTestClock, type startEngine, type TestEngine, until } from '../../support/engine.ts'
import { createScriptedProvider, exitWith, type ScriptedProvider } from '../../support/scripted-provider.ts'

const never = new AbortController().signal

const neverStarted = async (): Promise<Outcome> => ({
  kind: 'not-started',
  error: new AppError('unavailable', 'the daemon died first'),
})

/** Closes without a word to anybody and starts a successor on the same home. */
const restart = async (engine: TestEngine, ...args: Parameters<typeof startEngine>): Promise<TestEngine> => {
  await engine.close()
  return begin(args[0], { ...args[1], directory: engine.directory })
}

describe('after a restart', () => {
  it('a running job is attached, never started again, and its output continues without a gap', async () => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider])
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    await (await provider.started(job_id)).print('before ')
    const next = createScriptedProvider('sandbox')
    next.attachTo(next.runs)
    const successor = await restart(engine, [next])
    const run = await next.started(job_id)
    expect(run.request.sink.position).toBe(1)
    await run.print('after')
    run.finish()
    const view = await successor.deputy.wait(job_id, { timeoutMs: 10_000, signal: never })
    expect(view).toMatchObject({ status: 'success', attempts: 1 })
    expect((await successor.deputy.result(job_id, {})).output).toBe('before after')
    expect(next.calls).not.toContain('start')
    const types = (await successor.store.events({ jobId: job_id, after: 0, limit: 50 })).map(
      event => event.type,
    )
    expect(types).toContain('reattached')
  })

  it('a job that never started is taken from the queue again', async () => {
    const provider = createScriptedProvider('sandbox')
    provider.create = ({ signal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    const engine = await begin([provider])
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    await until(async () => (await engine.deputy.get(job_id)).status === 'provisioning', 'it is claimed')
    const next = createScriptedProvider('sandbox', { auto: true })
    next.onAttach = neverStarted
    const successor = await restart(engine, [next])
    expect(await successor.deputy.wait(job_id, { timeoutMs: 10_000, signal: never })).toMatchObject({
      status: 'success',
      attempts: 2,
    })
  })

  it('a running job whose machine has no record of the start is lost and never run again', async () => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider])
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    await provider.started(job_id)
    await until(async () => (await engine.deputy.get(job_id)).status === 'running', 'it runs')
    const next = createScriptedProvider('sandbox', { auto: true })
    next.onAttach = neverStarted
    const successor = await restart(engine, [next])
    expect(await successor.deputy.wait(job_id, { timeoutMs: 10_000, signal: never })).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: { code: 'lost' },
    })
    expect(next.calls).not.toContain('start')
  })

  it('a job whose command started and whose end is unknown is lost, with the reason', async () => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider])
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    await provider.started(job_id)
    const next = createScriptedProvider('sandbox')
    const successor = await restart(engine, [next])
    const view = await successor.deputy.wait(job_id, { timeoutMs: 10_000, signal: never })
    expect(view).toMatchObject({ status: 'failed', error: { code: 'lost' } })
    expect(next.calls).not.toContain('start')
  })

  it('a cancel request is remembered', async () => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider])
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    await provider.started(job_id)
    await engine.store.update(job_id, { cancelRequestedAt: 1 })
    const next = createScriptedProvider('sandbox')
    next.attachTo(next.runs)
    next.onAttach = (inner => async request => {
      if (request.stop.aborted)
        return { kind: 'exit', exit: exitWith({ code: null, signal: 'SIGKILL', stopped: 'cancel' }) }
      return inner(request)
    })(next.onAttach)
    const successor = await restart(engine, [next])
    expect((await successor.deputy.wait(job_id, { timeoutMs: 10_000, signal: never })).status).toBe(
      'cancelled',
    )
  })

  it('a job of a runtime that is no longer configured fails with the reason', async () => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider])
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    await provider.started(job_id)
    const successor = await restart(engine, [createScriptedProvider('microvm')])
    const view = await successor.deputy.get(job_id)
    expect(view.status).toBe('failed')
    expect(view.error?.message).toContain("'sandbox' is no longer configured")
    expect(await successor.deputy.machines()).toHaveLength(1)
  })

  it('a machine marked for destruction is destroyed, and an orphan not before its grace period', async () => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider])
    provider.failNext('destroy', new AppError('unavailable', 'down'))
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    ;(await provider.started(job_id)).finish()
    await engine.deputy.wait(job_id, { timeoutMs: 10_000, signal: never })
    await until(async () => (await engine.store.listMachines())[0]?.attempts === 1, 'the failed destruction')
    provider.existing.set('stranger', { id: 'stranger', details: {} })
    const successor = await restart(engine, [provider])
    await until(async () => (await successor.deputy.machines()).length === 0, 'the machine is gone')
    expect([...provider.existing.keys()]).toEqual(['stranger'])
  })

  it.each([0, 1, 2])('an orphan of provider %i of three is destroyed after its grace period', async index => {
    const providers = ['sandbox', 'host', 'container'].map(name => createScriptedProvider(name))
    const { existing } = providers[index]!
    existing.set('stranger', { id: 'stranger', details: {} })
    const config = (settings: Config): void => {
      settings.supervision.cleanup = 0.02
    }
    const { sweeps, clock } = await begin(providers, { config })
    await until(() => sweeps() > 3, 'some sweeps')
    expect(existing.size).toBe(1)
    clock.advance(61_000)
    await until(() => existing.size === 0, 'the orphan is gone', 20_000)
  })
})

describe('a slow recovery', () => {
  /** Longer than the dispatcher's own look at the queue. */
  const A_LOOK_MS = 700

  it('accepts submits, but claims no job and fills no pool before it has finished', async () => {
    const provider = createScriptedProvider('sandbox', { limit: 1 })
    const engine = await begin([provider])
    const running = await engine.deputy.submit({ task: 'running' }, 'test')
    await provider.started(running.job_id)
    const waiting = await engine.deputy.submit({ task: 'waiting' }, 'test')
    await engine.close()

    const next = createScriptedProvider('sandbox', { limit: 4, poolSize: 1, auto: true })
    let release = (): void => {}
    const slow = new Promise<void>(resolve => {
      release = resolve
    })
    let created: Engine | undefined
    const beginning = begin([next], {
      directory: engine.directory,
      onCreated: engine => {
        created = engine
      },
      store: store => ({
        ...store,
        activeJobs: async () => {
          await slow
          return store.activeJobs()
        },
      }),
    })
    await until(() => created !== undefined, 'the engine')
    const submitted = await created!.deputy.submit({ task: 'meanwhile' }, 'test')
    await new Promise(resolve => setTimeout(resolve, A_LOOK_MS))
    expect(next.calls).toEqual([])
    release()
    const { deputy } = await beginning
    for (const { job_id } of [waiting, submitted])
      expect(await deputy.wait(job_id, { timeoutMs: 10_000, signal: never })).toMatchObject({
        status: 'success',
        attempts: 1,
      })
    expect(next.calls.filter(call => call === 'start')).toHaveLength(2)
  })
})

describe('a clock that jumps', () => {
  const DAY_MS = 86_400_000
  const YEARS_MS = 3650 * DAY_MS
  const sweeping = (config: Config): void => {
    config.supervision.cleanup = 0.02
  }
  const isKnown = (engine: TestEngine, id: string): Promise<boolean> =>
    engine.deputy.get(id).then(
      () => true,
      () => false,
    )
  /** The jobs are looked through every few minutes: after that much time two sweeps begin. */
  const sweepAll = async (engine: TestEngine): Promise<void> => {
    for (let sweep = 0; sweep < 2; sweep++) {
      const before = engine.sweeps()
      engine.clock.advance(10 * 60_000)
      await until(() => engine.sweeps() >= before + 2, 'a sweep')
    }
  }
  const finished = async (engine: TestEngine, provider: ScriptedProvider): Promise<string> => {
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    ;(await provider.started(job_id)).finish()
    await engine.deputy.wait(job_id, { timeoutMs: 10_000, signal: never })
    await until(async () => (await engine.deputy.machines()).length === 0, 'its machine is gone')
    return job_id
  }

  it('deletes no job, but passing time does', async () => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider], { config: sweeping })
    const id = await finished(engine, provider)
    engine.clock.jump(YEARS_MS)
    await sweepAll(engine)
    expect(await isKnown(engine, id)).toBe(true)
    engine.clock.advance(31 * DAY_MS)
    await until(async () => !(await isKnown(engine, id)), 'it is forgotten in time')
  })

  it('while the daemon is stopped deletes no job', async () => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider], { config: sweeping })
    const id = await finished(engine, provider)
    await sweepAll(engine)
    await engine.close()
    const clock = createTestClock()
    clock.jump(YEARS_MS)
    const successor = await begin([provider], { config: sweeping, clock, directory: engine.directory })
    await sweepAll(successor)
    expect(await isKnown(successor, id)).toBe(true)
    clock.isSynchronized = async () => true
    // A sweep that is under way when the clock moves may still use the old time: move it until the next sweep is due.
    await until(async () => {
      clock.advance(2 * 60_000)
      return !(await isKnown(successor, id))
    }, 'a time server confirms the clock')
  })

  it('back and forth deletes no job', async () => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider], { config: sweeping })
    const id = await finished(engine, provider)
    for (const ms of [-YEARS_MS, 2 * YEARS_MS, -YEARS_MS]) {
      engine.clock.jump(ms)
      await sweepAll(engine)
    }
    expect(await isKnown(engine, id)).toBe(true)
  })

  it('ends no job and delays no retry', async () => {
    const clock = createTestClock()
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider], { clock })
    const running = await engine.deputy.submit({ task: 'x', timeout: 60 }, 'test')
    const run = await provider.started(running.job_id)
    clock.jump(400 * DAY_MS)
    expect((await engine.deputy.get(running.job_id)).status).toBe('running')
    run.finish()
    expect(await engine.deputy.wait(running.job_id, { timeoutMs: 10_000, signal: never })).toMatchObject({
      status: 'success',
      duration_seconds: 1,
    })

    provider.failNext('provision', new AppError('unavailable', 'not yet'))
    const retried = await engine.deputy.submit({ task: 'x' }, 'test')
    await until(async () => (await engine.deputy.get(retried.job_id)).attempts === 1, 'the first attempt')
    clock.jump(-800 * DAY_MS)
    ;(await provider.started(retried.job_id)).finish()
    expect((await engine.deputy.wait(retried.job_id, { timeoutMs: 10_000, signal: never })).status).toBe(
      'success',
    )
  })
})

describe('a machine that only the operator can free', () => {
  it('is shown with what to do, is not retried for ever, and is destroyed on request', async () => {
    const provider = createScriptedProvider('sandbox', { auto: true })
    const clock = createTestClock()
    const engine = await begin([provider], {
      clock,
      config: config => {
        config.supervision.cleanup = 0.02
      },
    })
    const destroy = provider.destroy
    let tries = 0
    provider.destroy = async () => {
      tries++
      throw operatorError('VM 100 is locked.', 'As root: qm unlock 100')
    }
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    await engine.deputy.wait(job_id, { timeoutMs: 10_000, signal: never })
    await until(async () => {
      clock.jump(400_000)
      return (await engine.store.listMachines())[0]?.notBefore === Number.MAX_SAFE_INTEGER
    }, 'it gives up')
    expect(tries).toBe(20)
    clock.jump(400_000)
    await engine.store.flush()
    expect(await engine.deputy.machines()).toMatchObject([
      { state: 'destroying', problem: 'VM 100 is locked. As root: qm unlock 100' },
    ])
    provider.destroy = destroy
    const [machine] = await engine.deputy.machines()
    await engine.deputy.destroyMachine(machine!.machine_id)
    expect(await engine.deputy.machines()).toEqual([])
    expect(tries).toBe(20)
  })
})
