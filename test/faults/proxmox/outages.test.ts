import { describe, expect, it } from 'vitest'
import { createProxmox } from '../../../src/proxmox/proxmox-client.ts'
import { parseSettings } from '../../../src/proxmox/proxmox-settings.ts'
import { begin, never, run, useLab } from '../../support/begin-lab.ts'
import { hasCurl } from '../../support/curl.ts'
import { type TestEngine, until } from '../../support/engine.ts'
import type { Lab } from '../../support/proxmox-provider.ts'

/** In a single attempt. */
const runOnce = (engine: TestEngine, manifest: Record<string, unknown>) =>
  run(engine, { retries: 0, ...manifest })

const count = (lab: Lab, pattern: RegExp) => lab.emulator.requests.filter(line => pattern.test(line)).length

describe.skipIf(!hasCurl)('a machine in the making', () => {
  it.each([
    ['its configuration', /PUT .*\/qemu\/\d+\/config/],
    ['its disk', /PUT .*\/resize/],
    ['its firewall', /POST .*\/firewall\/rules/],
    ['its seed', /POST .*\/upload/],
    ['its start', /POST .*\/status\/start/],
  ])('survives that the answer to %s is lost, in the same attempt', async (_, match) => {
    const { lab, engine } = await begin()
    lab.emulator.faults.addRequest({ match, times: 1, loseAnswer: true })
    const { job_id } = await engine.deputy.submit(
      { task: 'sleep 1', runtime: 'proxmox', retries: 0, resources: { disk: '12G' } },
      'test',
    )
    await until(async () => (await engine.deputy.get(job_id)).status !== 'pending', 'it is claimed')
    await until(async () => (await engine.deputy.get(job_id)).status !== 'provisioning', 'it runs', 50_000)
    const rules = lab.machines()[0]?.firewall.rules.length ?? 0
    const view = await engine.deputy.wait(job_id, { timeoutMs: 50_000, signal: never })
    expect(view).toMatchObject({ status: 'success', attempts: 1 })
    expect(rules).toBe(1)
    expect(count(lab, /\/clone/)).toBe(1)
  })

  it.each([
    ['/agent/exec-status', 'after'],
    ['/agent/file-write', 'after'],
    ['/agent/ping', 'before'],
  ] as const)('survives that the agent answers %s in vain', async (match, drop) => {
    const { lab, engine } = await begin({ provider: { injection: 'agent' } })
    lab.emulator.faults.addRequest({ match, times: 1, drop })
    expect(await runOnce(engine, { task: 'true' })).toMatchObject({ status: 'success', attempts: 1 })
    expect(count(lab, /\/clone/)).toBe(1)
  })

  it('is waited for while the cluster does not answer', async () => {
    const { lab, engine } = await begin({ guests: { bootMs: 7000 } })
    lab.emulator.faults.addRequest({ match: '/status/current', times: 6, drop: 'before' })
    const view = await runOnce(engine, { task: 'true' })
    expect(view).toMatchObject({ status: 'success', attempts: 1 })
    expect(count(lab, /\/status\/current/)).toBeGreaterThan(2)
  })

  it('waits for a cluster that restarts, without spending an attempt', async () => {
    const lab = await useLab()
    let failures = 0
    const logger = { debug: () => {}, info: () => {}, error: () => {}, warn: () => void failures++ }
    const proxmox = createProxmox(parseSettings(lab.emulator.env()), { logger })
    const engine = await lab.open(lab.makeProvider({ proxmox }))
    for (const { node } of lab.emulator.endpoints) await lab.emulator.setNode(node, false)
    const { job_id } = await engine.deputy.submit({ task: 'true', runtime: 'proxmox', retries: 0 }, 'test')
    await until(async () => (await engine.deputy.get(job_id)).status === 'provisioning', 'it is claimed')
    failures = 0
    await until(() => failures > 20, 'it was tried for a while', 30_000)
    for (const { node } of lab.emulator.endpoints) await lab.emulator.setNode(node, true)
    const view = await engine.deputy.wait(job_id, { timeoutMs: 55_000, signal: never })
    expect(view).toMatchObject({ status: 'success', attempts: 1 })
  })

  it('that fails tells how long it had taken until then', async () => {
    const { lab, engine } = await begin()
    lab.emulator.faults.addTask({ type: 'qmstart', step: 'start', error: 'start failed: no such device' })
    const view = await runOnce(engine, { task: 'true' })
    expect(view.status).toBe('failed')
    expect(Object.keys(view.phases)).toEqual(expect.arrayContaining(['clone', 'configure', 'start']))
    expect(view.phases).not.toHaveProperty('boot')
  })
})
