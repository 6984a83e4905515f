import { describe, expect, it } from 'vitest'
import type { JobState } from '../../../src/jobs/states.ts'
import type { Run, SinkBatch, StopReason } from '../../../src/ports.ts'
import { type ChildJobs, createBatchProvider } from '../../../src/providers/batch/batch-provider.ts'

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

const createRun = (position: number, stop: AbortSignal, written: SinkBatch[]): Run => {
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
  return run as Run
}

const textOf = (batches: readonly SinkBatch[]): string =>
  batches.map(batch => Buffer.concat(batch.chunks.map(chunk => chunk.data)).toString()).join('')

describe('the log of a batch', () => {
  it('has one line per command, even if they end in another order after a restart', async () => {
    const bench = createBench('[2/3] success: second\n')
    const written: SinkBatch[] = []
    const provider = createBatchProvider({
      children: () => bench.children,
      child: async (_, index) => ({ task: COMMANDS[index] }),
    })
    const ended = provider.attach(createRun(1, new AbortController().signal, written))
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
    const provider = createBatchProvider({
      children: () => bench.children,
      child: async (_, index) => ({ task: COMMANDS[index] }),
    })
    const ended = await provider.start(createRun(0, stop.signal, written))
    expect(bench.submitted).toEqual([])
    expect(ended).toMatchObject({ kind: 'exit', exit: { stopped: 'cancel' } })
    expect(textOf(written)).toContain('[3/3] not started, the batch was ended: third')
  })

  it('cancels its commands if it was cancelled while the daemon was down', async () => {
    const bench = createBench()
    const stop = new AbortController()
    const reason: StopReason = { kind: 'cancel', by: 'test' }
    stop.abort(reason)
    const provider = createBatchProvider({
      children: () => bench.children,
      child: async (_, index) => ({ task: COMMANDS[index] }),
    })
    await provider.attach(createRun(0, stop.signal, []))
    expect(bench.submitted).toEqual(COMMANDS)
  })
})
