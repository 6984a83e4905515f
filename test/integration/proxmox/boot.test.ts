import { existsSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { describe, expect, it } from 'vitest'
import { begin, clean, never, run, useLab } from '../../support/begin-lab.ts'
import { hasCurl } from '../../support/curl.ts'
import { until } from '../../support/engine.ts'
import { freePort } from '../../support/free-port.ts'

/** What cloud-init writes in a guest when it has done everything. */
const hasBooted = (vmid: number): boolean =>
  readdirSync(tmpdir())
    .filter(name => name.startsWith(`guest-${vmid}-`))
    .some(name => existsSync(join(tmpdir(), name, 'var/lib/cloud/instance/boot-finished')))

describe.skipIf(!hasCurl)('a machine that boots', () => {
  it.each(['iso', 'http'] as const)('is done with that before the job is, seeded by %s', async injection => {
    const { lab, engine } = await begin({ provider: { injection } })
    const { job_id } = await engine.deputy.submit({ task: 'echo x; sleep 60', runtime: 'proxmox' }, 'test')
    await until(async () => (await engine.deputy.get(job_id)).status === 'running', 'it runs', 30_000)
    await until(() => hasBooted(lab.machines()[0]!.vmid), 'the boot is over')
    expect((await engine.deputy.get(job_id)).status).toBe('running')
    await engine.deputy.cancel(job_id, 'test')
    await clean(lab)
  })

  it('is given as long as the settings say', async () => {
    const { lab, engine } = await begin({ guests: { bootMs: 60_000 }, provider: { bootSeconds: 1 } })
    const view = await run(engine, { task: 'true', retries: 0 })
    expect(view.error?.message).toMatch(/did not call .* within 1 s/)
    expect(view.error?.hint).toContain('proxmox.boot')
    await clean(lab)
  })

  it('and is cancelled is no failure of ours', async () => {
    const errors: string[] = []
    const log = pino({ level: 'error' }, { write: (line: string) => void errors.push(line) })
    const lab = await useLab({ guests: { bootMs: 60_000 } })
    const engine = await lab.open(lab.makeProvider(), { log })
    const { job_id } = await engine.deputy.submit({ task: 'true', runtime: 'proxmox' }, 'test')
    await until(() => lab.machines().some(vm => vm.status === 'running'), 'it boots', 20_000)
    await engine.deputy.cancel(job_id, 'test')
    expect((await engine.deputy.wait(job_id, { timeoutMs: 30_000, signal: never })).status).toBe('cancelled')
    await clean(lab)
    expect(errors).toEqual([])
  })

  it('when the daemon ends is adopted by the next one', async () => {
    const lab = await useLab({ guests: { bootMs: 3000 } })
    lab.usePort(await freePort())
    const first = await lab.open(lab.makeProvider())
    const { job_id } = await first.deputy.submit({ task: 'echo adopted', runtime: 'proxmox' }, 'test')
    await until(() => lab.machines().some(vm => vm.status === 'running'), 'it boots', 20_000)
    await first.close()
    const second = await lab.open(lab.makeProvider())
    const view = await second.deputy.wait(job_id, { timeoutMs: 50_000, signal: never })
    expect(view).toMatchObject({ status: 'success', attempts: 1 })
    expect((await second.deputy.result(job_id, {})).output).toBe('adopted\n')
    expect(lab.emulator.requests.filter(line => /POST .*\/clone/.test(line))).toHaveLength(1)
    await clean(lab)
    expect(lab.seeds()).toEqual([])
  })

  it('not yet when the daemon ends gives way to another', async () => {
    const lab = await useLab({ emulator: { timing: { cloneMs: 1500 } } })
    lab.usePort(await freePort())
    const first = await lab.open(lab.makeProvider())
    const { job_id } = await first.deputy.submit({ task: 'echo again', runtime: 'proxmox' }, 'test')
    await until(() => lab.emulator.requests.some(line => /POST .*\/clone/.test(line)), 'it is cloned', 20_000)
    await first.close()
    const second = await lab.open(lab.makeProvider())
    const view = await second.deputy.wait(job_id, { timeoutMs: 50_000, signal: never })
    expect(view).toMatchObject({ status: 'success' })
    expect((await second.deputy.result(job_id, {})).output).toBe('again\n')
    await clean(lab)
  })
})

describe.skipIf(!hasCurl)('a storage of seeds that is full', () => {
  const fill = (lab: Awaited<ReturnType<typeof useLab>>): void => {
    lab.emulator.state.storages.get('seeds')!.total = 100
  }

  it('makes machines fetch their seed over HTTP', async () => {
    const { lab, engine } = await begin()
    fill(lab)
    expect(await run(engine, { task: 'true', retries: 0 })).toMatchObject({ status: 'success' })
    await clean(lab)
  })

  it('makes machines without a network get it through their agent', async () => {
    const { lab, engine } = await begin({ provider: { channel: 'agent' } })
    fill(lab)
    expect(await run(engine, { task: 'true', retries: 0 })).toMatchObject({ status: 'success' })
    await clean(lab)
  })

  it('is said to be full where nothing else may be used', async () => {
    const { lab, engine } = await begin({ provider: { injection: 'iso' } })
    fill(lab)
    const view = await run(engine, { task: 'true', retries: 0 })
    expect(view.error?.message).toContain('No space left')
    await clean(lab)
  })
})
