import { afterEach, describe, expect, it } from 'vitest'
import { removeDirectory, startEngine, type TestEngine } from '../../support/engine.ts'
import { createScriptedProvider } from '../../support/scripted-provider.ts'

const never = new AbortController().signal
let engine: TestEngine

afterEach(async () => {
  await engine.close()
  removeDirectory(engine.directory)
})

const ran = async (pieces: string[], keep = 1024): Promise<string> => {
  const provider = createScriptedProvider('sandbox')
  engine = await startEngine([provider], {
    config: config => {
      config.keep.outputHead = keep
      config.keep.outputTail = keep
    },
  })
  const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
  const run = await provider.started(job_id)
  for (const piece of pieces) await run.print(piece)
  run.finish()
  await engine.deputy.wait(job_id, { timeoutMs: 10_000, signal: never })
  return job_id
}

describe('output', () => {
  it('is returned whole when it fits', async () => {
    const id = await ran(['one\n', 'two\n'])
    expect(await engine.deputy.result(id, {})).toMatchObject({ output: 'one\ntwo\n', truncated: null })
  })

  it('keeps both ends and reports what is omitted between them', async () => {
    const id = await ran(['start', ...Array.from({ length: 200 }, () => 'x'.repeat(100)), 'the end'])
    const result = await engine.deputy.result(id, { maxBytes: 400 })
    expect(result.output.startsWith('start')).toBe(true)
    expect(result.output.endsWith('the end')).toBe(true)
    const { skipped_bytes, head_bytes, tail_bytes } = result.truncated!
    expect(skipped_bytes + head_bytes + tail_bytes).toBe(result.output_bytes)
    expect(result.output).toContain(`${skipped_bytes} bytes omitted`)
  })

  it('is cut between lines where it has lines', async () => {
    const lines = Array.from({ length: 60 }, (_, i) => `line ${i} of them\n`)
    const id = await ran(lines)
    for (let maxBytes = 100; maxBytes < 130; maxBytes++) {
      const { output, truncated, output_bytes } = await engine.deputy.result(id, { maxBytes })
      const shown = output.split(/(?<=\n)/)
      const note = shown.indexOf(`[… ${truncated!.skipped_bytes} bytes omitted …]\n`)
      expect(note).toBeGreaterThan(0)
      expect(shown.slice(0, note)).toEqual(lines.slice(0, note))
      expect(shown.slice(note + 1)).toEqual(lines.slice(note + 1 - shown.length))
      const { skipped_bytes, head_bytes, tail_bytes } = truncated!
      expect(skipped_bytes + head_bytes + tail_bytes).toBe(output_bytes)
    }
  })

  it('is never cut within a character', async () => {
    const id = await ran(['ä€😀'.repeat(100)])
    for (let maxBytes = 20; maxBytes < 40; maxBytes++)
      expect((await engine.deputy.result(id, { maxBytes })).output).not.toContain('\ufffd')
  })

  it('is followed to its end, with every byte or the number of those that were dropped', async () => {
    const id = await ran(Array.from({ length: 500 }, (_, i) => `${i}`.padStart(99, '.').concat('\n')))
    let expected = 0
    let skipped = 0
    for await (const page of engine.deputy.follow(id, { signal: never }))
      for (const piece of page.pieces) {
        expect(piece.offset).toBe(expected)
        const size = 'skipped' in piece ? piece.skipped : piece.data.length
        if ('skipped' in piece) skipped += piece.skipped
        expected += size
      }
    expect(expected).toBe(50_000)
    expect(skipped).toBeGreaterThan(40_000)
  })

  it('can be read from a cursor, from the end, and by waiting', async () => {
    const provider = createScriptedProvider('sandbox')
    engine = await startEngine([provider])
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    const run = await provider.started(job_id)
    await run.print('0123456789')
    const from4 = await engine.deputy.output(job_id, { cursor: 4, signal: never })
    expect(from4).toMatchObject({ next_cursor: 10, done: false, pieces: [{ offset: 4 }] })
    const last3 = await engine.deputy.output(job_id, { cursor: -3, signal: never })
    expect(Buffer.from((last3.pieces[0] as { data: Uint8Array }).data).toString()).toBe('789')
    const waiting = engine.deputy.output(job_id, { cursor: 10, waitMs: 10_000, signal: never })
    await run.print('more')
    expect((await waiting).next_cursor).toBe(14)
    run.finish()
    await engine.deputy.wait(job_id, { timeoutMs: 10_000, signal: never })
    expect(await engine.deputy.output(job_id, { cursor: 14, waitMs: 10_000, signal: never })).toMatchObject({
      done: true,
      pieces: [],
    })
  })
})

describe('events', () => {
  it('are followed to the end of a job, each once and in order', async () => {
    const provider = createScriptedProvider('sandbox')
    engine = await startEngine([provider])
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    const seen: string[] = []
    const following = (async () => {
      for await (const event of engine.deputy.followEvents({ id: job_id, signal: never }))
        seen.push(event.type === 'state' ? String(event.data.to) : event.type)
    })()
    ;(await provider.started(job_id)).finish()
    await following
    expect(seen.slice(0, 4)).toEqual(['submitted', 'provisioning', 'running', 'success'])
  })
})
