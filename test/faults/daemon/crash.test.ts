import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { FAULT_POINTS } from '../../../src/engine/engine-context.ts'
import { newHome, type TestDaemon, useDaemons } from '../../support/daemon.ts'
import { until } from '../../support/engine.ts'

const start = useDaemons()

/** Prints in pieces, so that some of it comes before the crash and some after. */
const TASK =
  'echo first; for i in $(seq 1 40); do echo "line $i"; sleep 0.02; done; echo last; echo data > out.txt'
const EXPECTED = ['first', ...Array.from({ length: 40 }, (_, i) => `line ${i + 1}`), 'last', ''].join('\n')

/** Sweeping starts with the daemon; nothing may be left of a machine when it has no record. */
const nothingLeft = async (daemon: TestDaemon): Promise<void> => {
  await until(async () => (await daemon.client.machines()).length === 0, 'no machine is recorded', 20_000)
  const runs = join(daemon.home.stateDir, 'sandbox', 'runs')
  await until(() => entries(runs).length === 0, `${runs} is empty`, 20_000)
}

const entries = (directory: string): string[] => {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

describe('kill -9 of the daemon', () => {
  it.each(FAULT_POINTS)('at the step "%s" loses no job, no line, and runs nothing twice', async point => {
    const directory = newHome()
    const victim = await start({ directory, env: { DEPUTY_FAULT_POINT: point } })
    const manifest = { task: TASK, idempotency_key: 'once', artifacts: ['out.txt'], timeout: 60 }
    // The answer may not arrive: then the same submit is repeated, as a careful client does.
    await victim.client.submit(manifest).catch(() => undefined)
    expect(await victim.ended()).toBe('SIGKILL')

    const daemon = await start({ directory })
    const { job_id } = await daemon.client.submit(manifest)
    const view = await daemon.client.wait(job_id, { timeoutMs: 30_000, signal: AbortSignal.timeout(40_000) })
    expect(view).toMatchObject({ status: 'success', exit_code: 0 })
    const result = await daemon.client.result(job_id)
    expect(result.output).toBe(EXPECTED)
    expect(result.artifacts.map(artifact => artifact.path)).toEqual(['out.txt'])
    expect((await daemon.client.list()).jobs).toHaveLength(1)
    await nothingLeft(daemon)
  })

  it('again and again, while several jobs run, still loses nothing', async () => {
    const directory = newHome()
    let daemon = await start({ directory })
    const ids: string[] = []
    for (let i = 0; i < 3; i++) ids.push((await daemon.client.submit({ task: TASK })).job_id)
    for (let round = 0; round < 4; round++) {
      await until(async () => {
        const views = await Promise.all(ids.map(id => daemon.client.get(id)))
        return views.some(view => view.output_bytes > round * 60)
      }, 'some output')
      await daemon.kill()
      daemon = await start({ directory })
    }
    for (const id of ids) {
      await daemon.client.wait(id, { timeoutMs: 40_000, signal: AbortSignal.timeout(50_000) })
      expect(await daemon.client.result(id)).toMatchObject({
        status: 'success',
        output: EXPECTED,
      })
    }
    await nothingLeft(daemon)
  })

  it('does not stop the clock of a job: its timeout ends it while no daemon runs', async () => {
    const directory = newHome()
    const victim = await start({ directory })
    const { job_id } = await victim.client.submit({ task: 'echo begun; sleep 600', timeout: 5 })
    await until(async () => (await victim.client.get(job_id)).output_bytes > 0, 'it has begun')
    await victim.kill()
    const runs = join(victim.home.stateDir, 'sandbox', 'runs')
    const ended = (): boolean => {
      const [machine] = entries(runs)
      return (
        machine !== undefined && entries(join(runs, machine, job_id)).some(name => name.startsWith('exit'))
      )
    }
    await until(ended, 'the shim has ended the job by itself', 20_000)
    const daemon = await start({ directory })
    const view = await daemon.client.wait(job_id, { timeoutMs: 10_000, signal: AbortSignal.timeout(20_000) })
    expect(view).toMatchObject({ status: 'timeout', error: { code: 'timeout' } })
    await nothingLeft(daemon)
  })
})
