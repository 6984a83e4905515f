import { describe, expect, it } from 'vitest'
import { type BatchRun, type ChildJobs, runBatch } from '../../../src/engine/run-batch.ts'
import { batchCommand } from '../../../src/jobs/batch-command.ts'
import type { JobState } from '../../../src/jobs/states.ts'
import type { SinkBatch, StopReason } from '../../../src/ports.ts'
import { begin } from '../../support/begin-engine.ts'
import { type TestEngine, until } from '../../support/engine.ts'
import { createScriptedProvider } from '../../support/scripted-provider.ts'

const COMMANDS = ['first', 'second', 'third']

interface Bench {
  children: ChildJobs
  submitted: string[]
  end(command: string): void
}

/** Jobs that end when the test says so. */
const createBench = (log = ''): Bench => {
  const ends = new Map<string, () => void>()
  const gates = new Map(COMMANDS.map(id => [id, new Promise<void>(resolve => ends.set(id, resolve))]))
  const submitted: string[] = []
  const children: ChildJobs = {
    submit: async manifest => {
      const { task } = manifest as { task: string }
      submitted.push(task)
      return { job_id: task, status: 'pending' as JobState }
    },
    wait: async id => {
      await gates.get(id)
      return { job_id: id, status: 'success', exit_code: 0 }
    },
    cancel: async id => ends.get(id)?.(),
    output: async () => ({ pieces: [{ data: Buffer.from(log) }], next_cursor: log.length }),
  }
  return { children, submitted, end: id => ends.get(id)?.() }
}

const createRun = (position: number, stop: AbortSignal, written: SinkBatch[]): BatchRun => {
  const run: unknown = {
    job: { id: 'batch', origin: 'test', startedAt: 1, outputBytes: 0 },
    manifest: { agent: { command: ['parallel', '--', ...COMMANDS] } },
    sink: {
      position,
      started: async () => {},
      heartbeat: () => {},
      write: async (batch: SinkBatch) => void written.push(batch),
    },
    stop,
    detach: new AbortController().signal,
  }
  return run as BatchRun
}

const textOf = (batches: readonly SinkBatch[]): string =>
  batches.map(batch => Buffer.concat(batch.chunks.map(chunk => chunk.data)).toString()).join('')

const BATCH = {
  task: 'three commands',
  agentType: 'custom',
  agent: { command: batchCommand({ commands: COMMANDS }) },
  runtime: 'batch',
  statusMode: 'detailed',
}

const batchChild = async (_: unknown, index: number) => ({ task: COMMANDS[index], runtime: 'other' })

const childrenOf = async ({ deputy }: TestEngine, parent: string): Promise<Map<string, string>> => {
  const { jobs } = await deputy.list({ parent })
  return new Map(jobs.map(job => [job.task, job.job_id]))
}

describe('a batch', () => {
  it('has no machine: its commands are jobs, and it ends with the last of them', async () => {
    const provider = createScriptedProvider('other', { limit: 3 })
    const engine = await begin([provider], { batchChild })
    const { job_id } = await engine.deputy.submit(BATCH, 'test')
    await until(async () => (await childrenOf(engine, job_id)).size === 3, 'the commands are submitted')
    const children = await childrenOf(engine, job_id)
    const runs = await Promise.all(COMMANDS.map(command => provider.started(children.get(command)!)))
    const machines = await engine.deputy.machines()
    expect(machines.map(machine => machine.job_id).sort()).toEqual([...children.values()].sort())
    for (const run of runs.slice(1)) run.finish({})
    await until(async () => (await engine.deputy.get(job_id)).progress === '2 of 3 done', 'two have ended')
    runs[0]!.finish({ code: 3 })
    const ended = await engine.deputy.wait(job_id, {
      timeoutMs: 10_000,
      signal: new AbortController().signal,
    })
    expect(ended).toMatchObject({ status: 'failed', exit_code: 1, machine_id: null })
  })

  it('continues after a restart of the daemon with the jobs that it has submitted', async () => {
    const provider = createScriptedProvider('other', { limit: 3 })
    const first = await begin([provider], { batchChild })
    const { job_id } = await first.deputy.submit(BATCH, 'test')
    await until(async () => (await childrenOf(first, job_id)).size === 3, 'the commands are submitted')
    const children = await childrenOf(first, job_id)
    await Promise.all([...children.values()].map(id => provider.started(id)))
    await first.close()

    const next = createScriptedProvider('other', { limit: 3 })
    next.attachTo(provider.runs)
    const second = await begin([next], { batchChild, directory: first.directory })
    for (const id of children.values()) (await next.started(id)).finish({})
    const ended = await second.deputy.wait(job_id, {
      timeoutMs: 10_000,
      signal: new AbortController().signal,
    })
    expect(ended).toMatchObject({ status: 'success' })
    expect(await childrenOf(second, job_id)).toEqual(children)
  })

  it('is refused when it is not a list of commands', async () => {
    const { deputy } = await begin([])
    const agent = { command: ['true'] }
    await expect(deputy.submit({ ...BATCH, agent }, 'test')).rejects.toMatchObject({ code: 'unsupported' })
  })
})

describe('a task for several agents', () => {
  const AGENTS = { task: 'solve it', agents: 3, env: { MODE: 'fast' }, labels: { team: 'blue' } }

  it('is a batch with one job for each, and one result with all of them', async () => {
    const provider = createScriptedProvider('other', { limit: 3 })
    const { deputy } = await begin([provider])
    const { job_id, runtime } = await deputy.submit({ ...AGENTS, runtime: 'other' }, 'test')
    expect(runtime).toBe('batch')
    const members = async () => (await deputy.list({ parent: job_id, sort: 'oldest' })).jobs
    await until(async () => (await members()).length === 3, 'the members are submitted')
    const ids = (await members()).map(job => job.job_id)
    const runs = await Promise.all(ids.map(id => provider.started(id)))
    for (const { request } of runs) {
      expect(request.manifest).toMatchObject({ task: 'solve it', env: { MODE: 'fast' }, runtime: 'other' })
      expect(request.manifest).not.toHaveProperty('agents')
    }
    expect(runs.map(({ request }) => request.manifest.labels?.['deputy/index']).sort()).toEqual([
      '0',
      '1',
      '2',
    ])
    runs[0]!.finish({ code: 4 })
    for (const run of runs.slice(1)) run.finish()
    const ended = await deputy.wait(job_id, { timeoutMs: 30_000, signal: new AbortController().signal })
    expect(ended).toMatchObject({ status: 'failed', exit_code: 1 })
    const result = await deputy.result(job_id, {})
    expect(result.members?.map(({ job_id, status, exit_code }) => [job_id, status, exit_code])).toEqual([
      [ids[0], 'failed', 4],
      [ids[1], 'success', 0],
      [ids[2], 'success', 0],
    ])
    for (const id of ids) expect(result.output).toContain(id)
    expect(result).not.toHaveProperty('unmatched_artifacts')
  })

  it('gives each the artifacts of needed jobs, and waits for these once', async () => {
    const provider = createScriptedProvider('sandbox', { limit: 3 })
    const { deputy } = await begin([provider])
    const first = (await deputy.submit({ task: 'x' }, 'test')).job_id
    const { job_id } = await deputy.submit({ ...AGENTS, needs: [first] }, 'test')
    expect(await deputy.get(job_id)).toMatchObject({ status: 'pending', waits_for: [first] })
    const content = (async function* () {
      yield Buffer.from('a')
    })()
    const blob = await deputy.putBlob(content)
    ;(await provider.started(first)).finish({ artifacts: [{ path: 'a', ...blob }] })
    await until(async () => (await deputy.list({ parent: job_id })).jobs.length === 3, 'they are submitted')
    const { jobs } = await deputy.list({ parent: job_id })
    const { workspace } = await deputy.manifest(job_id)
    for (const { job_id: id } of jobs) {
      const { request } = await provider.started(id)
      expect(request.manifest.workspace).toEqual({ patch: false, blob: workspace?.blob })
      expect(request.manifest).not.toHaveProperty('needs')
    }
  })

  it('is refused before anything is stored when no provider can run a member', async () => {
    const { deputy } = await begin([createScriptedProvider('other')])
    await expect(deputy.submit({ ...AGENTS, runtime: 'sandbox' }, 'test')).rejects.toThrow(/sandbox/)
    for (const agents of [1, 17, 2.5])
      await expect(deputy.submit({ ...AGENTS, agents }, 'test')).rejects.toThrow(/'agents'/)
    expect((await deputy.list({})).jobs).toEqual([])
  })

  it('cancels all of them', async () => {
    const provider = createScriptedProvider('sandbox', { limit: 2 })
    const { deputy } = await begin([provider])
    const { job_id } = await deputy.submit(AGENTS, 'test')
    await until(async () => (await deputy.list({ parent: job_id })).jobs.length === 3, 'they are submitted')
    await deputy.cancel(job_id, 'test')
    const ended = await deputy.wait(job_id, { timeoutMs: 30_000, signal: new AbortController().signal })
    expect(ended.status).toBe('cancelled')
    const { members } = await deputy.result(job_id, {})
    expect(members?.map(({ status }) => status)).toEqual(['cancelled', 'cancelled', 'cancelled'])
  })
})

describe('the log of a batch', () => {
  it('has one line per command, even if they end in another order after a restart', async () => {
    const bench = createBench('[2/3] success: second\n')
    const written: SinkBatch[] = []
    const options = {
      children: () => bench.children,
      child: async (_: unknown, index: number) => ({ task: COMMANDS[index] }),
    }
    const ended = runBatch(options, createRun(1, new AbortController().signal, written), true)
    for (const command of ['first', 'third', 'second']) {
      bench.end(command)
      await new Promise(resolve => setImmediate(resolve))
    }
    expect(await ended).toMatchObject({ kind: 'exit', exit: { code: 0 } })
    expect(textOf(written)).toBe('[1/3] success: first\n[3/3] success: third\n')
  })
})

describe('a batch that was cancelled', () => {
  it('starts no more commands', async () => {
    const bench = createBench()
    const stop = new AbortController()
    const reason: StopReason = { kind: 'cancel', by: 'test' }
    stop.abort(reason)
    const written: SinkBatch[] = []
    const options = {
      children: () => bench.children,
      child: async (_: unknown, index: number) => ({ task: COMMANDS[index] }),
    }
    const ended = await runBatch(options, createRun(0, stop.signal, written), false)
    expect(bench.submitted).toEqual([])
    expect(ended).toMatchObject({ kind: 'exit', exit: { stopped: 'cancel' } })
    expect(textOf(written)).toContain('[3/3] not started, the batch was ended: third')
  })

  it('cancels its commands if it was cancelled while the daemon was down', async () => {
    const bench = createBench()
    const stop = new AbortController()
    const reason: StopReason = { kind: 'cancel', by: 'test' }
    stop.abort(reason)
    const options = {
      children: () => bench.children,
      child: async (_: unknown, index: number) => ({ task: COMMANDS[index] }),
    }
    await runBatch(options, createRun(0, stop.signal, []), true)
    expect(bench.submitted).toEqual(COMMANDS)
  })
})
