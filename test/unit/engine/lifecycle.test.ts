import pino from 'pino'
import { describe, expect, it } from 'vitest'
import { AppError } from '../../../src/jobs/errors.ts'
import { leftoverError } from '../../../src/jobs/leftover-error.ts'
import { begin } from '../../support/begin-engine.ts'
import { createTestClock, type TestEngine, until } from '../../support/engine.ts'
import { createScriptedProvider, type ScriptedProvider } from '../../support/scripted-provider.ts'

const never = new AbortController().signal

const finished = (engine: TestEngine, id: string) =>
  engine.deputy.wait(id, { timeoutMs: 10_000, signal: never })

describe('a job', () => {
  it('goes from pending to success, and its machine is destroyed afterwards', async () => {
    const provider = createScriptedProvider('sandbox')
    const { deputy, ...engine } = await begin([provider])
    const { job_id, status, runtime: chosen } = await deputy.submit({ task: 'echo hi' }, 'test')
    expect({ status, chosen }).toEqual({ status: 'pending', chosen: 'sandbox' })
    const run = await provider.started(job_id)
    expect((await deputy.get(job_id)).status).toBe('running')
    await run.print('hello\n')
    run.finish({ phases: { collect: 3 } })
    const view = await deputy.wait(job_id, { timeoutMs: 10_000, signal: never })
    expect(view).toMatchObject({ status: 'success', exit_code: 0, output_bytes: 6, duration_seconds: 1 })
    expect(view.phases).toMatchObject({ running: 1000, collect: 3 })
    await until(async () => (await deputy.machines()).length === 0, 'the machine is gone')
    expect(provider.existing.size).toBe(0)
    const result = await deputy.result(job_id, {})
    expect(result).toMatchObject({ output: 'hello\n', truncated: null, isolation: ['scripted'] })
    const events = await engine.store.events({ jobId: job_id, after: 0, limit: 100 })
    expect(events.filter(e => e.type === 'state').map(e => e.data.to)).toEqual([
      'provisioning',
      'running',
      'success',
    ])
  })

  it.each([
    [{ code: 3 }, 'failed', 'exit_code', 'exited with code 3'],
    [{ code: null, signal: 'SIGSEGV' }, 'failed', 'signal', 'killed by SIGSEGV'],
    [{ code: 137, limitsHit: ['memory: 512M'] }, 'failed', 'limit', 'memory: 512M'],
    [{ code: 0, agentError: 'The agent gave up.' }, 'failed', 'agent', 'gave up'],
    [
      { code: null, signal: 'SIGKILL', stopped: 'timeout' as const },
      'timeout',
      'timeout',
      'timeout of 3600 s',
    ],
  ])('that ends with %j is %s', async (exit, status, code, words) => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider])
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    ;(await provider.started(job_id)).finish(exit)
    const view = await finished(engine, job_id)
    expect(view.status).toBe(status)
    expect(view.error?.code).toBe(code)
    expect(view.error?.message).toContain(words)
  })

  it('names the patterns of artifacts that matched nothing, and only those', async () => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider])
    const submit = async (artifacts: string[]) => {
      const { job_id } = await engine.deputy.submit({ task: 'x', artifacts }, 'test')
      const skippedArtifacts = [{ path: 'large.bin', size: 9, reason: 'too_large' as const }]
      ;(await provider.started(job_id)).finish({ skippedArtifacts })
      await finished(engine, job_id)
      return engine.deputy.result(job_id, {})
    }
    expect(await submit(['*.txt', '*.bin'])).toMatchObject({ unmatched_artifacts: ['*.txt'] })
    expect(await submit(['*.bin'])).not.toHaveProperty('unmatched_artifacts')
  })

  it('has no session where the runtime has no way into its machines, nor when it does not run', async () => {
    const provider = createScriptedProvider('proxmox')
    const { deputy } = await begin([provider])
    const { job_id } = await deputy.submit({ task: 'x', runtime: 'proxmox' }, 'test')
    const run = await provider.started(job_id)
    const open = () => deputy.openSession(job_id, { argv: ['sh'], env: {} }, 'test')
    await expect(open()).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringContaining("'proxmox' have no way in for a terminal, files or ports"),
      hint: expect.stringContaining('--runtime sandbox'),
    })
    run.finish()
    await deputy.wait(job_id, { timeoutMs: 10_000, signal: never })
    await expect(open()).rejects.toMatchObject({ code: 'conflict' })
  })

  it('returns to the queue when all slots are in use, and no attempt is counted', async () => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider])
    provider.failNext('provision', new AppError('unavailable', 'all are taken', { details: { full: true } }))
    const { job_id } = await engine.deputy.submit({ task: 'x', retries: 0 }, 'test')
    const run = await provider.started(job_id)
    run.finish()
    expect(await finished(engine, job_id)).toMatchObject({ status: 'success', attempts: 1 })
  })

  it('is retried when its machine fails before the start, up to the requested number of retries', async () => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider])
    provider.failNext('provision', new AppError('unavailable', 'no machine to be had'))
    const { job_id } = await engine.deputy.submit({ task: 'x', retries: 1 }, 'test')
    const run = await provider.started(job_id)
    run.finish()
    expect(await finished(engine, job_id)).toMatchObject({ status: 'success', attempts: 2 })

    provider.failNext('start', new AppError('unavailable', 'it did not start'))
    const second = await engine.deputy.submit({ task: 'x', retries: 0 }, 'test')
    const view = await finished(engine, second.job_id)
    expect(view).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: { code: 'machine', message: 'it did not start' },
    })
    await until(() => provider.existing.size === 0, 'no machine is left')
  })

  it('that was lost after its start is not run again unless the manifest allows it', async () => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider])
    const lost = { kind: 'lost' as const, error: new AppError('unavailable', 'the machine vanished') }
    const first = await engine.deputy.submit({ task: 'x' }, 'test')
    ;(await provider.started(first.job_id)).end(lost)
    expect(await finished(engine, first.job_id)).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: { code: 'lost' },
    })

    const second = await engine.deputy.submit({ task: 'x', retryStarted: true }, 'test')
    const before = await provider.started(second.job_id)
    await before.print('first\n')
    before.end(lost)
    await until(
      async () => (await engine.deputy.get(second.job_id)).attempts === 2 && provider.runs.has(second.job_id),
      'the second run',
    )
    const run = provider.runs.get(second.job_id)!
    // A start and a stream of its own, behind what was printed before.
    expect(run.request.job).toMatchObject({ startedAt: null, position: 0, outputBase: 6 })
    await run.print('second\n')
    run.finish()
    expect(await finished(engine, second.job_id)).toMatchObject({ status: 'success', attempts: 2 })
    expect(await engine.deputy.result(second.job_id, {})).toMatchObject({ output: 'first\nsecond\n' })
  })

  it('is provisioned with the network that its agent needs, and rejected where the runtime cannot provide it', async () => {
    const provisioned: unknown[] = []
    const scripted = createScriptedProvider('sandbox', { auto: true })
    const provider: ScriptedProvider = {
      ...scripted,
      fits: ({ network }) =>
        network === 'full' ? { ok: false, reason: 'it has no open network' } : { ok: true },
      create: request => {
        provisioned.push(request.manifest?.network)
        return scripted.create(request)
      },
    }
    const engine = await begin([provider], {
      config: config => {
        const preset = { env: {}, secrets: [], programs: [], format: 'text' as const }
        config.agents.tool = { ...preset, argv: ['tool', '{task}'], network: ['example.org'] }
        config.agents.open = { ...preset, argv: ['open', '{task}'], network: 'full' }
      },
    })
    for (const job of [{ agentType: 'tool' }, { agentType: 'tool', network: 'none' }, {}]) {
      const { job_id } = await engine.deputy.submit({ task: 'x', ...job }, 'test')
      await finished(engine, job_id)
    }
    expect(provisioned).toEqual([['example.org'], 'none', undefined])
    await expect(engine.deputy.submit({ task: 'x', agentType: 'open' }, 'test')).rejects.toThrow(
      'it has no open network',
    )
  })

  it('is stopped when heartbeats stop, but not when there never was one', async () => {
    const mortal = createScriptedProvider('sandbox')
    const patient = createScriptedProvider('ssh')
    const engine = await begin([mortal, patient], {
      config: config => {
        config.supervision.heartbeat = 0.05
      },
    })
    const held = await engine.deputy.submit({ task: 'x', runtime: 'ssh' }, 'test')
    const run = await patient.started(held.job_id)
    const silent = await engine.deputy.submit({ task: 'x', runtime: 'sandbox' }, 'test')
    ;(await mortal.started(silent.job_id)).request.sink.heartbeat()
    expect(await finished(engine, silent.job_id)).toMatchObject({
      status: 'failed',
      error: { code: 'stale' },
    })
    expect(await engine.deputy.get(held.job_id)).toMatchObject({ status: 'running' })
    run.finish()
    expect(await finished(engine, held.job_id)).toMatchObject({ status: 'success' })
  })

  it('is accepted by a runtime that failed its last check and works again', async () => {
    let ready = false
    let ahead = 0
    let checks = 0
    const provider: ScriptedProvider = {
      ...createScriptedProvider('sandbox', { auto: true }),
      check: async () => {
        checks++
        return {
          runtime: 'sandbox',
          ready,
          checks: [{ name: 'line', status: ready ? 'ok' : 'failed', message: 'the line is cut' }],
        }
      },
    }
    const clock = { ...createTestClock(), monotonic: () => performance.now() + ahead }
    const engine = await begin([provider], { clock })
    await engine.deputy.doctor(never)
    await expect(engine.deputy.submit({ task: 'x' }, 'test')).rejects.toThrow('the line is cut')
    const asked = checks
    await expect(engine.deputy.submit({ task: 'x' }, 'test')).rejects.toThrow('the line is cut')
    expect(checks).toBe(asked)
    ready = true
    ahead = 60_000
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    expect(await finished(engine, job_id)).toMatchObject({ status: 'success' })
  })

  it('keeps the machine record until the runtime confirms the destruction', async () => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider])
    provider.failNext('destroy', new AppError('unavailable', 'the provider is down'))
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    ;(await provider.started(job_id)).finish()
    await finished(engine, job_id)
    await until(
      async () => (await engine.store.listMachines())[0]?.lastError === 'the provider is down',
      'the failure is recorded',
    )
    expect((await engine.deputy.machines())[0]).toMatchObject({ state: 'destroying' })
    await engine.deputy.destroyMachine((await engine.deputy.machines())[0]!.machine_id)
    expect(await engine.deputy.machines()).toEqual([])
  })

  it('deletes the record of a machine that can never be destroyed, and reports it', async () => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider])
    provider.failNext('destroy', leftoverError('it stays on the moon', 'fetch it'))
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    ;(await provider.started(job_id)).finish()
    await until(async () => (await engine.store.listMachines()).length === 0, 'the record to go')
    const events = await engine.deputy.events(job_id, {})
    expect(events.at(-1)?.data).toMatchObject({ gone: false, left: 'it stays on the moon' })
    expect((await engine.deputy.get(job_id)).status).toBe('success')
  })
})

describe('cancelling', () => {
  it('ends a pending job at once and never creates a machine for it', async () => {
    const provider = createScriptedProvider('sandbox', { limit: 1 })
    const engine = await begin([provider])
    const first = await engine.deputy.submit({ task: 'first' }, 'test')
    await provider.started(first.job_id)
    const second = await engine.deputy.submit({ task: 'second' }, 'test')
    expect(second.queue_position).toBe(1)
    expect((await engine.deputy.cancel(second.job_id, 'test')).status).toBe('cancelled')
    provider.runs.get(first.job_id)!.finish()
    await finished(engine, first.job_id)
    expect(provider.calls.filter(call => call === 'start')).toHaveLength(1)
  })

  it('ends a running job, and a second cancel fails because the job is finished', async () => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider])
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    await provider.started(job_id)
    await engine.deputy.cancel(job_id, 'somebody')
    expect(await finished(engine, job_id)).toMatchObject({ status: 'cancelled', cancel_requested: true })
    await expect(engine.deputy.cancel(job_id, 'test')).rejects.toMatchObject({ code: 'conflict' })
  })

  it('during provisioning leaves no machine and starts nothing', async () => {
    const provider = createScriptedProvider('sandbox')
    let release = (): void => {}
    const provision = provider.create
    provider.create = async request => {
      await provision(request)
      await new Promise<void>(resolve => {
        release = resolve
      })
    }
    const engine = await begin([provider])
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    await until(() => provider.existing.size === 1, 'the machine exists')
    await engine.deputy.cancel(job_id, 'test')
    release()
    expect((await finished(engine, job_id)).status).toBe('cancelled')
    expect(provider.calls).not.toContain('start')
    await until(() => provider.existing.size === 0, 'the machine is gone')
  })

  it('that aborts the creation of a machine is no defect', async () => {
    const provider = createScriptedProvider('sandbox')
    let isCreating = false
    provider.create = ({ signal }) =>
      new Promise((_, reject) => {
        isCreating = true
        signal.addEventListener('abort', () => reject(signal.reason))
      })
    const errors: unknown[] = []
    const log = pino({ level: 'error' }, { write: line => errors.push(JSON.parse(line)) })
    const engine = await begin([provider], { log })
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    await until(() => isCreating, 'the machine is being created')
    await engine.deputy.cancel(job_id, 'test')
    expect((await finished(engine, job_id)).status).toBe('cancelled')
    expect(errors).toEqual([])
  })

  it('of many jobs at once leaves every job finished and no machine', async () => {
    const provider = createScriptedProvider('sandbox', { limit: 8 })
    const engine = await begin([provider])
    const views = await Promise.all(
      Array.from({ length: 200 }, (_, i) => engine.deputy.submit({ task: `job ${i}` }, 'test')),
    )
    const wishes = views.map(async ({ job_id }, i) => {
      if (i % 2 === 0) await engine.deputy.cancel(job_id, 'test').catch(() => undefined)
      else void provider.started(job_id).then(run => run.finish())
    })
    await Promise.all(wishes)
    for (const { job_id } of views) await finished(engine, job_id)
    const statuses = await Promise.all(
      views.map(async ({ job_id }) => (await engine.deputy.get(job_id)).status),
    )
    expect(statuses.filter((_, i) => i % 2 === 1).every(status => status === 'success')).toBe(true)
    expect(statuses.filter((_, i) => i % 2 === 0).every(status => status === 'cancelled')).toBe(true)
    await until(async () => (await engine.deputy.machines()).length === 0, 'all machines are gone')
    expect(provider.existing.size).toBe(0)
  })
})

describe('the queue', () => {
  it('runs by priority, then by arrival, never more than the limit', async () => {
    const provider = createScriptedProvider('sandbox', { limit: 1 })
    const engine = await begin([provider])
    const order: string[] = []
    const start = provider.start
    provider.start = run => {
      order.push(run.manifest.task)
      return start(run)
    }
    const first = await engine.deputy.submit({ task: 'first' }, 'test')
    await provider.started(first.job_id)
    const jobs = []
    for (const [task, priority] of [
      ['low', -1],
      ['a', 0],
      ['b', 0],
      ['urgent', 5],
    ] as const)
      jobs.push(await engine.deputy.submit({ task, priority }, 'test'))
    expect((await engine.deputy.get(jobs[0]!.job_id)).queue_position).toBe(4)
    expect((await engine.deputy.get(jobs[3]!.job_id)).queue_position).toBe(1)
    for (const { job_id } of [first, ...jobs]) void provider.started(job_id).then(run => run.finish())
    for (const { job_id } of jobs) await finished(engine, job_id)
    expect(order).toEqual(['first', 'urgent', 'a', 'b', 'low'])
  })

  it('answers with a clear error when it is full', async () => {
    const provider = createScriptedProvider('sandbox', { limit: 1 })
    const engine = await begin([provider], {
      config: config => {
        config.limits.queue = 2
      },
    })
    const first = await engine.deputy.submit({ task: 'x' }, 'test')
    await provider.started(first.job_id)
    await engine.deputy.submit({ task: 'x' }, 'test')
    await engine.deputy.submit({ task: 'x' }, 'test')
    await expect(engine.deputy.submit({ task: 'x' }, 'test')).rejects.toMatchObject({
      code: 'queue_full',
      retryable: true,
    })
  })

  it('gives the same job for the same key and manifest, and a conflict for another manifest', async () => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider])
    const manifest = { task: 'x', idempotency_key: 'k', env: { A: '1', B: '2' } }
    const [a, b] = await Promise.all([
      engine.deputy.submit(manifest, 'test'),
      engine.deputy.submit(manifest, 'test'),
    ])
    expect(a.job_id).toBe(b.job_id)
    expect([a.deduplicated, b.deduplicated].filter(Boolean)).toHaveLength(1)
    const reordered = await engine.deputy.submit(
      { env: { B: '2', A: '1' }, idempotency_key: 'k', task: 'x' },
      'test',
    )
    expect(reordered).toMatchObject({ job_id: a.job_id, deduplicated: true })
    await expect(engine.deputy.submit({ ...manifest, task: 'y' }, 'test')).rejects.toMatchObject({
      code: 'conflict',
    })
  })
})

describe('a persistent machine', () => {
  it('outlives its job, runs a follow-up, and is destroyed with its job', async () => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider])
    const first = await engine.deputy.submit({ task: 'x', lifecycle: 'persistent', lease: 600 }, 'test')
    ;(await provider.started(first.job_id)).finish()
    await finished(engine, first.job_id)
    const [machine] = await engine.deputy.machines()
    expect(machine).toMatchObject({ state: 'kept' })
    provider.fit = { ok: false, reason: 'it has no such network' }
    await expect(
      engine.deputy.submit({ task: 'y', machine: machine!.machine_id }, 'test'),
    ).rejects.toMatchObject({ code: 'unsupported', message: expect.stringContaining('no such network') })
    provider.fit = { ok: true }
    const follow = await engine.deputy.submit({ task: 'y', machine: machine!.machine_id }, 'test')
    const run = await provider.started(follow.job_id)
    expect(run.request.machine.id).toBe(machine!.machine_id)
    run.finish({ code: 1 })
    expect((await finished(engine, follow.job_id)).status).toBe('failed')
    expect((await engine.deputy.machines())[0]).toMatchObject({
      state: 'kept',
      machine_id: machine!.machine_id,
    })
    await engine.deputy.destroyMachine(machine!.machine_id)
    await expect(
      engine.deputy.submit({ task: 'z', machine: machine!.machine_id }, 'test'),
    ).rejects.toMatchObject({ code: 'not_found' })
  })

  it('is destroyed when its lease ends', async () => {
    const provider = createScriptedProvider('sandbox')
    const engine = await begin([provider], {
      config: config => {
        config.supervision.cleanup = 10
      },
    })
    const { job_id } = await engine.deputy.submit({ task: 'x', lifecycle: 'persistent', lease: 60 }, 'test')
    ;(await provider.started(job_id)).finish()
    await finished(engine, job_id)
    const [machine] = await engine.store.listMachines()
    await engine.store.updateMachine(machine!.id, { leaseUntil: engine.clock.now() - 1 })
    await engine.close()
    const next = await begin([provider], { directory: engine.directory })
    await until(async () => (await next.deputy.machines()).length === 0, 'the machine is gone')
    expect(provider.existing.size).toBe(0)
  })
})
