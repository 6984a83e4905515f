import { describe, expect, it } from 'vitest'
import { parseManifest } from '../../../../src/jobs/manifest.ts'
import type { AttachRequest, SinkBatch } from '../../../../src/ports.ts'
import { createJobHandler } from '../../../../src/providers/proxmox/job-handler.ts'
import { createOutputReceiver } from '../../../../src/providers/proxmox/output-receiver.ts'
import type { Finished } from '../../../../src/providers/proxmox/vm-details.ts'

const ID = '0f8fad5b-d9cb-469f-a165-70867728950e'

const open = ({ failures = 0 } = {}) => {
  let left = failures
  const batches: SinkBatch[] = []
  const ends: Finished[] = []
  const { signal } = new AbortController()
  const sink = {
    position: 0,
    started: async () => {},
    write: async (batch: SinkBatch) => {
      if (left-- > 0) throw new Error('no room')
      batches.push(batch)
    },
    heartbeat: () => {},
  }
  const run = {
    job: { id: ID } as AttachRequest['job'],
    manifest: parseManifest({ task: 'x' }),
    machine: { id: 'm', runtime: 'proxmox', jobId: ID, details: {} },
    sink,
    stop: signal,
    detach: signal,
    remember: async () => {},
  } satisfies AttachRequest
  const port = createJobHandler({
    run,
    outputReceiver: createOutputReceiver({
      sink,
      outputBytes: 0,
      read: () => ({ secrets: { KEY: 'hunter2hunter2' }, format: 'text' }),
      keep: () => undefined,
      now: () => 1,
    }),
    blobs: {} as never,
    files: { files: async () => [], receive: async () => [] },
    collected: () => ({ artifacts: [], skipped: [], patch: null }),
    outlivesJob: false,
    now: () => 1,
    withStart: () => ({}),
    onStarted: () => {},
    onFinished: finished => ends.push(finished),
    onRefused: () => {},
  })
  const text = (stream: 'stdout' | 'stderr') =>
    Buffer.concat(
      batches.flatMap(({ chunks }) => chunks.filter(one => one.stream === stream).map(one => one.data)),
    ).toString()
  return { port, ends, text, batches }
}

const payload = (more: object) => ({
  job_id: ID,
  status: 'success' as const,
  exit_code: 0,
  output: 'done\n',
  duration_seconds: 1,
  ...more,
})

describe('the end as an older runner tells it', () => {
  it.each([
    [{ status: 'success' as const, exit_code: 0 }, 0],
    [{ status: 'success' as const, exit_code: 3 }, 3],
    [{ status: 'failed' as const, exit_code: 0 }, 1],
    [{ status: 'failed' as const, exit_code: 256 }, 255],
    [{ status: 'success' as const, exit_code: 256 }, 255],
    [{ status: 'failed' as const, exit_code: -1 }, 255],
  ])('is %j and counts as %i', async (told, code) => {
    const { port, ends } = open()
    await port.complete(payload(told))
    expect(ends).toMatchObject([{ report: { code, signal: 0 } }])
  })

  it('is remembered in the same step as its last words: a crash between the two would double them', async () => {
    const { port, batches } = open()
    await port.complete(payload({ output: 'the last words\n' }))
    expect(batches).toHaveLength(1)
    expect(batches[0]).toMatchObject({
      chunks: [{ data: Buffer.from('the last words\n') }],
      remember: { finished: { jobId: ID, report: { code: 0 } } },
    })
  })

  it('that could not be written is taken when it comes again', async () => {
    const { port, ends, text } = open({ failures: 1 })
    await expect(port.complete(payload({}))).rejects.toThrow('no room')
    expect(ends).toEqual([])
    await port.complete(payload({}))
    expect(ends).toHaveLength(1)
    expect(text('stdout')).toContain('done')
  })

  it('counts once, with its output and its error, without secrets', async () => {
    const { port, ends, text } = open()
    const failed = payload({
      status: 'failed',
      exit_code: 1,
      output: 'a hunter2hunter2\n',
      error: 'it broke',
    })
    await Promise.all([port.complete(failed), port.complete(failed)])
    await port.complete(payload({}))
    await port.status({ job_id: ID, progress: 'late', output: 'late\n' })
    await port.output({ stream: 'stdout', offset: 0, data: Buffer.from('late\n') })
    expect(ends).toMatchObject([{ report: { code: 1 } }])
    expect(text('stdout')).toMatch(/^a \S+\n$/)
    expect(text('stdout')).not.toContain('hunter2')
    expect(text('stderr')).toBe('it broke\n')
  })
})
