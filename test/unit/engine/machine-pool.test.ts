import { describe, expect, it } from 'vitest'
import { AppError } from '../../../src/jobs/errors.ts'
import { newId } from '../../../src/jobs/ids.ts'
import { parseManifest } from '../../../src/jobs/manifest.ts'
import { poolKindOf } from '../../../src/jobs/pool-kind.ts'
import { begin } from '../../support/begin-engine.ts'
import { createTestClock, type startEngine, type TestEngine, until } from '../../support/engine.ts'
import { createScriptedProvider } from '../../support/scripted-provider.ts'

const never = new AbortController().signal

const sweepOften: NonNullable<Parameters<typeof startEngine>[1]>['config'] = config => {
  config.supervision.cleanup = 0.05
}

const readyIn = async (engine: TestEngine) =>
  (await engine.store.listMachines()).filter(machine => machine.state === 'ready')

describe('a pool', () => {
  it('gives an idle machine to the next job and is refilled', async () => {
    const provider = createScriptedProvider('sandbox', { poolSize: 2, auto: true })
    const engine = await begin([provider])
    const ready = async () => (await engine.store.listMachines()).filter(machine => machine.state === 'ready')
    await until(async () => (await ready()).length === 2, 'two machines wait')
    const waiting = (await ready()).map(machine => machine.id)
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    const view = await engine.deputy.wait(job_id, { timeoutMs: 10_000, signal: never })
    expect(waiting).toContain(view.machine_id)
    await until(
      async () => (await ready()).length === 2 && provider.existing.size === 2,
      'the pool is full again',
    )
  })

  it('keeps machines of each kind, gives a job one that fits, and retires unwanted kinds', async () => {
    const kinds = ['small', 'large']
    const runtime = {
      ...createScriptedProvider('sandbox', { auto: true }),
      pool: {
        size: 1,
        kinds,
        kindFor: ({ task }: { task: string }) => (task === 'odd' ? undefined : task),
      },
    }
    const engine = await begin([runtime], { config: sweepOften })
    const full = async () =>
      (await readyIn(engine)).map(poolKindOf).sort().join() === [...kinds].sort().join()
    await until(full, 'one of each kind waits')
    const large = (await readyIn(engine)).find(machine => poolKindOf(machine) === 'large')!
    const ids = (await readyIn(engine)).map(({ id }) => id)
    const runOne = async (task: string) => {
      const { job_id } = await engine.deputy.submit({ task }, 'test')
      return (await engine.deputy.wait(job_id, { timeoutMs: 10_000, signal: never })).machine_id
    }
    expect(ids).not.toContain(await runOne('odd'))
    expect(await runOne('large')).toBe(large.id)
    await until(full, 'it is filled again')
    kinds.pop()
    await until(full, 'the kind that is not wanted any more is gone')
  })

  it('replaces a machine that is too old, and is never empty meanwhile', async () => {
    const provider = createScriptedProvider('sandbox', { poolSize: 1, poolAgeSeconds: 3600 })
    const clock = createTestClock()
    const engine = await begin([provider], { clock, config: sweepOften })
    await until(async () => (await readyIn(engine)).length === 1, 'a machine waits')
    const [old] = await readyIn(engine)
    provider.failNext('provision', new AppError('unavailable', 'the provider is down'))
    clock.jump(2 * 3_600_000)
    await until(
      () => provider.calls.filter(call => call.startsWith('provision')).length >= 2,
      'a first attempt failed',
    )
    expect(await engine.store.getMachine(old!.id)).toMatchObject({ state: 'ready' })
    await until(async () => (await engine.store.getMachine(old!.id)) === undefined, 'the old one is gone')
    const now = await readyIn(engine)
    expect(now).toHaveLength(1)
    expect(now[0]!.id).not.toBe(old!.id)
    expect([...provider.existing.keys()]).toEqual([now[0]!.id])
  })

  it('retires machines when the pool size shrinks', async () => {
    const first = await begin([createScriptedProvider('sandbox', { poolSize: 2 })])
    await until(async () => (await readyIn(first)).length === 2, 'two machines wait')
    const provider = createScriptedProvider('sandbox', { poolSize: 0 })
    for (const { id } of await readyIn(first)) provider.existing.set(id, { id, details: {} })
    await first.close()
    const engine = await begin([provider], { directory: first.directory })
    await until(async () => (await engine.store.listMachines()).length === 0, 'both are gone')
    expect(provider.calls.filter(call => call === 'destroy')).toHaveLength(2)
  })

  it('replaces an idle machine that no longer exists', async () => {
    const provider = createScriptedProvider('sandbox', { poolSize: 1 })
    const engine = await begin([provider], { config: sweepOften })
    await until(async () => (await readyIn(engine)).length === 1, 'a machine waits')
    const [lost] = await readyIn(engine)
    provider.existing.clear()
    await until(async () => {
      const ready = await readyIn(engine)
      return ready.length === 1 && ready[0]!.id !== lost!.id
    }, 'another waits')
  })

  it('either claims or retires a machine when both race', async () => {
    const provider = createScriptedProvider('sandbox', { poolSize: 0, auto: true })
    const engine = await begin([provider])
    for (let round = 0; round < 40; round++) {
      const id = newId()
      await engine.store.insertMachine({
        id,
        runtime: 'other',
        jobId: null,
        state: 'ready',
        details: {},
        createdAt: Date.now(),
        leaseUntil: null,
        attempts: 0,
        notBefore: 0,
        lastError: null,
      })
      const { job } = await engine.store.insertJob({
        id: newId(),
        manifest: parseManifest({ task: 'x' }),
        manifestHash: 'h',
        title: 'x',
        runtime: 'other',
        origin: 'test',
        createdAt: 1,
        timeoutSeconds: 60,
      })
      const claim = () => engine.store.claim({ runtime: 'other', machineId: newId(), now: Date.now() })
      const retire = () => engine.store.markIdleDestroying(id)
      const [claimed, retired] =
        round % 2 === 0
          ? await Promise.all([claim(), retire()])
          : await Promise.all([retire(), claim()]).then(([b, a]) => [a, b] as const)
      expect(claimed?.job.id).toBe(job.id)
      expect(retired).toBe(claimed!.machine.id !== id)
      expect((await engine.store.getMachine(id))?.state).toBe(retired ? 'destroying' : 'busy')
    }
  })
})
