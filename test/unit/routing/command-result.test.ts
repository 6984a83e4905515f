import { afterEach, describe, expect, it } from 'vitest'
import { commandResult } from '../../../src/routing/command-result.ts'
import { removeDirectory, startEngine, type TestEngine } from '../../support/engine.ts'
import { createScriptedProvider } from '../../support/scripted-provider.ts'

const never = new AbortController().signal
let engine: TestEngine

afterEach(async () => {
  await engine.close()
  removeDirectory(engine.directory)
})

describe('the result of a command', () => {
  it('has whole lines of both ends of its output, and the number of bytes between them', async () => {
    const provider = createScriptedProvider('sandbox')
    engine = await startEngine([provider])
    const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
    const run = await provider.started(job_id)
    const lines = Array.from({ length: 100 }, (_, i) => `line ${i}\n`)
    await run.print(lines.join(''))
    run.finish()
    await engine.deputy.wait(job_id, { timeoutMs: 50_000, signal: never })
    const { stdout, stderr, skipped_bytes } = await commandResult(engine.deputy, job_id, 'here', never, 100)
    const shown = stdout.split(/(?<=\n)/)
    const note = shown.indexOf(`[… ${skipped_bytes} bytes omitted …]\n`)
    expect(note).toBeGreaterThan(0)
    expect(shown.slice(0, note)).toEqual(lines.slice(0, note))
    expect(shown.slice(note + 1)).toEqual(lines.slice(note + 1 - shown.length))
    const kept = Buffer.byteLength(stdout) - Buffer.byteLength(shown[note]!)
    expect(kept + Number(skipped_bytes)).toBe(Buffer.byteLength(lines.join('')))
    expect(stderr).toBe('')
  })
})
