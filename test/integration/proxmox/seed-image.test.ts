import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createProxmox } from '../../../src/proxmox/client.ts'
import { parseSettings } from '../../../src/proxmox/settings.ts'
import { begin, never } from '../../support/begin-lab.ts'
import { hasCurl } from '../../support/curl.ts'
import { type TestEngine, until } from '../../support/engine.ts'
import type { Lab } from '../../support/proxmox-runtime.ts'

const beginSeeded = () => begin({ runtime: { injection: 'iso' } })

/** A job that runs until it is told that it is enough. */
const beginJob = async (lab: Lab, engine: TestEngine, more: Record<string, unknown> = {}) => {
  const enough = join(lab.directory, 'enough')
  const task = `until [ -e ${enough} ]; do sleep 0.1; done`
  const { job_id } = await engine.deputy.submit({ task, runtime: 'proxmox', ...more }, 'test')
  return {
    end: () => {
      writeFileSync(enough, '')
      return engine.deputy.wait(job_id, { timeoutMs: 45_000, signal: never })
    },
  }
}

const sent = (lab: Lab, pattern: RegExp) => lab.emulator.requests.filter(line => pattern.test(line)).length
const DELETED = /^DELETE .*\/content\//
const CONFIGURED = /^PUT .*\/config$/
const driveOf = (lab: Lab): string | undefined => lab.machines()[0]?.config.ide2

describe.skipIf(!hasCurl)('the seed image', () => {
  it('is ejected and deleted while its machine works, and that is that', async () => {
    const { lab, engine } = await beginSeeded()
    const job = await beginJob(lab, engine)
    await until(() => lab.seeds().length === 1, 'there is an image', 30_000)
    await until(() => lab.seeds().length === 0, 'the image is gone', 30_000)
    expect(lab.machines()).toMatchObject([{ status: 'running' }])
    expect(driveOf(lab)).toBe('none,media=cdrom')
    expect((await job.end()).status).toBe('success')
    await until(async () => (await engine.deputy.machines()).length === 0, 'the record is gone', 30_000)
    expect(sent(lab, DELETED)).toBe(1)
    const failures = [...lab.emulator.state.tasks.values()].filter(task => task.exitstatus !== 'OK')
    expect(failures.map(task => task.exitstatus)).toEqual([])
  })

  it('is not missed by a guest that starts again', async () => {
    const { lab, engine } = await beginSeeded()
    const job = await beginJob(lab, engine, { lifecycle: 'persistent' })
    await until(() => driveOf(lab) === 'none,media=cdrom' && lab.seeds().length === 0, 'it is gone', 30_000)
    const view = await job.end()
    const client = createProxmox(parseSettings(lab.emulator.env()))
    onTestFinished(() => client.close())
    const { node, vmid } = lab.machines()[0]!
    for (const verb of ['reset', 'stop', 'start'])
      await client.waitTask(await client.post<string>(`/nodes/${node}/qemu/${vmid}/status/${verb}`))
    expect(lab.machines()).toMatchObject([{ status: 'running' }])
    await engine.deputy.destroyMachine(view.machine_id!)
    expect(lab.machines()).toEqual([])
  })

  it('goes with the machine when the job is over at once', async () => {
    const { lab, engine } = await beginSeeded()
    const { job_id } = await engine.deputy.submit({ task: 'true', runtime: 'proxmox' }, 'test')
    expect((await engine.deputy.wait(job_id, { timeoutMs: 45_000, signal: never })).status).toBe('success')
    await until(async () => (await engine.deputy.machines()).length === 0, 'the record is gone', 30_000)
    expect(lab.seeds()).toEqual([])
    expect(sent(lab, DELETED)).toBe(1)
  })

  it('is not deleted from a drive that does not let go of it, until the machine goes', async () => {
    const { lab, engine } = await beginSeeded()
    const job = await beginJob(lab, engine)
    await until(() => driveOf(lab)?.startsWith('seeds:') === true, 'it is attached', 30_000)
    const before = sent(lab, CONFIGURED)
    lab.emulator.faults.addRequest({ match: CONFIGURED, status: 400, message: 'hotplug problem' })
    await until(() => sent(lab, CONFIGURED) > before, 'it is to be ejected', 30_000)
    lab.emulator.faults.clear()
    expect((await job.end()).status).toBe('success')
    expect(sent(lab, DELETED)).toBe(0)
    await until(async () => (await engine.deputy.machines()).length === 0, 'the record is gone', 30_000)
    expect(lab.seeds()).toEqual([])
  })
})
