import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { compiledFile } from '../../../src/files/compiled-file.ts'
import type { ShimConfig } from '../../../src/providers/local/shim-config.ts'
import { createHarness } from '../../support/providers.ts'
import { SANDBOXES } from '../../support/sandboxes.ts'
import { processesWith } from './provider-contract.ts'

const { subject } = SANDBOXES.find(variant => variant.skip === undefined)!

describe.skipIf(process.getuid?.() !== 0)('shims of a root daemon that start in the same moment', () => {
  it('have user ids of their own', async () => {
    const harness = await createHarness(subject)
    const uids = () =>
      processesWith(harness.stateDir).flatMap(
        line => /shim\.js .*"uids":\{"first":(\d+)/.exec(line)?.[1] ?? [],
      )
    // Each has a shim of its own.
    const jobs = await Promise.all(
      Array.from({ length: 4 }, () =>
        harness.launch({ task: 'echo on; sleep 300' }, { secrets: { TOKEN: 'not told' } }),
      ),
    )
    for (const { sink } of jobs) await sink.until(({ text }) => text().includes('on'), 'it runs')
    expect(uids().length).toBeGreaterThanOrEqual(4)
    expect(new Set(uids()).size).toBe(uids().length)
    await harness.dispose()
  })
})

describe('a shim that cannot start', () => {
  const home = mkdtempSync(join(tmpdir(), 'deputy-shim-start-'))
  const dir = join(home, 'shims')
  afterEach(() => rmSync(dir, { recursive: true, force: true }))

  const startIn = async (dir: string): Promise<{ code: number | null; log: string }> => {
    const config: ShimConfig = {
      ...{ id: '0badcafe', dir, runtime: 'host', backend: { type: 'none' }, cgroup: null, cgroupPrefix: '' },
      ...{ uids: null, maxMachines: 1, spareMachines: 0, maxJobs: 1, idleSeconds: 3600, build: 'b1' },
      warm: { memory: 0, disk: 0, cpu: 0, processes: 0 },
    }
    const child = spawn(process.execPath, [compiledFile('shim/shim.js'), JSON.stringify(config)], {
      cwd: home,
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: 30_000,
      killSignal: 'SIGKILL',
    })
    let log = ''
    child.stderr.on('data', (chunk: Buffer) => {
      log += chunk.toString()
    })
    return new Promise(resolve => child.once('close', code => resolve({ code, log })))
  }

  it('exits with the reason when its home is gone', async () => {
    expect(await startIn(dir)).toMatchObject({ code: 1, log: expect.stringContaining('ENOENT') })
  })

  it('exits with the reason when its home vanishes after it has begun to listen', async () => {
    mkdirSync(dir)
    // It enters the directory first, where the relative name leads nowhere, as if the directory were gone.
    expect(await startIn('shims')).toMatchObject({ code: 1, log: expect.stringContaining('0badcafe.d') })
  })

  it('exits with the reason when it cannot listen', async () => {
    mkdirSync(dir)
    writeFileSync(join(dir, '0badcafe.sock'), '')
    expect(await startIn(dir)).toMatchObject({ code: 1, log: expect.stringContaining('EADDRINUSE') })
  })
})
