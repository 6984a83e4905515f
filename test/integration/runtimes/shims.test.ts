import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createHarness } from '../../support/runtimes.ts'
import { leftovers, SANDBOXES } from '../../support/sandboxes.ts'
import { exitOf, processesWith, waitFor } from './contract.ts'

const { subject } = SANDBOXES.find(variant => variant.skip === undefined)!
const shims = (stateDir: string) => processesWith(stateDir).filter(line => line.includes('shim.js'))

describe('the processes that hold jobs', () => {
  it('are reused: many jobs in a row start no more of them', async () => {
    const harness = await createHarness(subject)
    for (let index = 0; index < 24; index++) await harness.run({ task: 'true' })
    const ids = readdirSync(join(harness.stateDir, 'sandbox/shims')).filter(name => name.endsWith('.sock'))
    // Spare ones, the one at work, and those on their way back; without reuse there would be one for each job.
    expect(ids.length).toBeLessThan(8)
    await harness.dispose()
    await waitFor(() => shims(harness.stateDir).length === 0, 'free shims end with the runtime')
    expect(leftovers(harness)).toEqual([])
  })

  it('end when they were idle for a while, but for the spare ones', async () => {
    const options = { ...subject.options, spare: 1, idleSeconds: 2 }
    const harness = await createHarness({ ...subject, options })
    const burst = await Promise.all(
      Array.from({ length: 5 }, () => harness.launch({ task: 'echo on; sleep 60' })),
    )
    for (const { sink } of burst) await sink.until(({ text }) => text().includes('on'), 'it runs')
    expect(shims(harness.stateDir).length).toBeGreaterThanOrEqual(5)
    for (const job of burst) job.stop('cancel')
    await Promise.all(burst.map(({ outcome }) => outcome))
    for (const { machine } of burst) await harness.runtime.destroy(machine, AbortSignal.timeout(10_000))
    await waitFor(() => shims(harness.stateDir).length === 1, 'only the spare one is left')
    const { outcome, sink } = await harness.run({ task: 'echo fine' })
    expect(exitOf(outcome).code).toBe(0)
    expect(sink.text()).toBe('fine\n')
    await harness.dispose()
  })

  it('stay with their job when the runtime is closed, and end when their home is gone', async () => {
    const harness = await createHarness(subject)
    const launched = await harness.launch({ task: 'echo on; sleep 300' })
    await launched.sink.until(sink => sink.text().includes('on'), 'it runs')
    launched.detach()
    await launched.outcome
    await harness.runtime.close()
    expect(shims(harness.stateDir).length).toBeGreaterThan(0)
    rmSync(harness.stateDir, { recursive: true, force: true })
    await waitFor(() => shims(harness.stateDir).length === 0, 'they end')
    expect(leftovers(harness)).toEqual([])
  })

  it('work in a home with a very long path', async () => {
    const base = mkdtempSync(join(tmpdir(), `deputy-${'long-'.repeat(20)}`))
    const before = process.env.TMPDIR
    process.env.TMPDIR = base
    try {
      const harness = await createHarness(subject)
      expect(harness.stateDir.length).toBeGreaterThan(108)
      const { outcome, sink } = await harness.run({ task: 'echo fine', network: ['example.invalid'] })
      expect(exitOf(outcome).code).toBe(0)
      expect(sink.text()).toBe('fine\n')
      await harness.dispose()
    } finally {
      if (before === undefined) delete process.env.TMPDIR
      else process.env.TMPDIR = before
      rmSync(base, { recursive: true, force: true })
    }
  })

  it('keep what a job printed when the disk of the daemon is slow to take it', async () => {
    const harness = await createHarness(subject)
    const launched = await harness.launch({ task: 'for i in $(seq 1 2000); do echo line $i; done' })
    const write = launched.sink.write
    launched.sink.write = async batch => {
      await new Promise(resolve => setTimeout(resolve, 100))
      await write(batch)
    }
    expect(exitOf(await launched.outcome).code).toBe(0)
    expect(launched.sink.text()).toBe(
      Array.from({ length: 2000 }, (_, index) => `line ${index + 1}\n`).join(''),
    )
    await harness.dispose()
  })
})
