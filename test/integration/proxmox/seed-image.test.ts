import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createSeedImages } from '../../../src/providers/proxmox/seed-images.ts'
import { silentLogger } from '../../../src/proxmox/logger.ts'
import { createProxmox } from '../../../src/proxmox/proxmox-client.ts'
import { systemClock } from '../../../src/proxmox/proxmox-clock.ts'
import { parseSettings } from '../../../src/proxmox/proxmox-settings.ts'
import { begin, never, useLab } from '../../support/begin-lab.ts'
import { hasCurl } from '../../support/curl.ts'
import { type TestEngine, until } from '../../support/engine.ts'
import { freePort } from '../../support/free-port.ts'
import type { Lab } from '../../support/proxmox-provider.ts'
import { newVm } from '../../support/pve/state.ts'

const beginSeeded = () => begin({ provider: { injection: 'iso' } })

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
const failures = (lab: Lab) =>
  [...lab.emulator.state.tasks.values()].flatMap(task => (task.exitstatus === 'OK' ? [] : [task.exitstatus]))
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
    expect(failures(lab)).toEqual([])
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

describe.skipIf(!hasCurl)('the seed image, after a restart of the daemon,', () => {
  /** A machine at work, and what starts the daemon anew. */
  const beginAgain = async () => {
    const lab = await useLab({ provider: { injection: 'iso' } })
    lab.usePort(await freePort())
    const first = lab.makeProvider()
    const engine = await lab.open(first)
    const job = await beginJob(lab, engine, { lifecycle: 'persistent' })
    await until(() => driveOf(lab)?.startsWith('seeds:') === true, 'it is attached', 30_000)
    const restart = async (): Promise<TestEngine> => {
      await engine.close()
      await first.close()
      return lab.open(lab.makeProvider())
    }
    return { lab, job, restart }
  }

  it('is taken from a machine at work that still has it', async () => {
    const { lab, restart } = await beginAgain()
    const before = sent(lab, CONFIGURED)
    lab.emulator.faults.addRequest({ match: CONFIGURED, status: 400, message: 'hotplug problem' })
    await until(() => sent(lab, CONFIGURED) > before, 'it is to be ejected', 30_000)
    expect(lab.seeds()).toHaveLength(1)
    lab.emulator.faults.clear()
    await restart()
    await until(() => lab.seeds().length === 0, 'the image is gone', 30_000)
    expect(driveOf(lab)).toBe('none,media=cdrom')
    expect(lab.machines()).toMatchObject([{ status: 'running' }])
  })

  it('is taken from a kept machine that still has it', async () => {
    const { lab, job, restart } = await beginAgain()
    lab.emulator.faults.addRequest({ match: DELETED, status: 500, message: 'storage problem' })
    await until(() => sent(lab, DELETED) > 0, 'it is to be deleted', 30_000)
    expect((await job.end()).status).toBe('success')
    lab.emulator.faults.clear()
    await restart()
    await until(() => lab.seeds().length === 0, 'the image is gone', 30_000)
    expect(lab.machines()).toMatchObject([{ status: 'running' }])
  })
})

describe('the removal of a seed image', () => {
  const VMID = 100_007

  const VOLID = 'seeds:iso/seed.iso'

  /** An image in the drive of a guest, and a clock without pauses. */
  const beginRemoval = async () => {
    const lab = await useLab()
    const connect = (sleep = systemClock.sleep) => {
      const client = createProxmox(parseSettings(lab.emulator.env()), { clock: { ...systemClock, sleep } })
      onTestFinished(() => client.close())
      return client
    }
    const image = { storage: 'seeds', content: 'iso', filename: 'seed.iso', file: Buffer.from('x') } as const
    await connect().upload({ node: 'pve1', ...image })
    const vm = newVm(VMID, 'pve1', { ide2: `${VOLID},media=cdrom` })
    vm.pool = 'jobs'
    vm.status = 'running'
    lab.emulator.state.vms.set(VMID, vm)
    const failed: string[] = []
    const log = { ...silentLogger, debug: (_: object, text: string) => void failed.push(text) }
    const proxmox = connect(async () => {})
    const answers: string[] = []
    const get = async <T>(...call: Parameters<typeof proxmox.get>): Promise<T> => {
      const answer = await proxmox.get<T>(...call)
      answers.push(call[0])
      return answer
    }
    const images = createSeedImages({ proxmox: { ...proxmox, get }, log })
    onTestFinished(() => images.close())
    return { lab, vm, images, failed, answers }
  }

  it('is tried again until it can be done', async () => {
    const { lab, vm, images, failed } = await beginRemoval()
    lab.emulator.faults.addRequest({ match: CONFIGURED, times: 2, status: 400, message: 'hotplug problem' })
    images.retire('machine', { node: 'pve1', vmid: VMID, drive: 'ide2', volid: VOLID })
    await until(() => lab.seeds().length === 0, 'the image is gone', 20_000)
    expect(vm.config.ide2).toBe('none,media=cdrom')
    expect(failed).toHaveLength(2)
  })

  it('is left for later after a few attempts', async () => {
    const { lab, images, failed } = await beginRemoval()
    lab.emulator.faults.addRequest({ match: CONFIGURED, status: 400, message: 'hotplug problem' })
    images.retire('machine', { node: 'pve1', vmid: VMID, drive: 'ide2', volid: VOLID })
    await until(() => failed.length === 5, 'it was tried often enough', 20_000)
    expect(sent(lab, CONFIGURED)).toBe(5)
    expect(lab.seeds()).toHaveLength(1)
  })

  it('finds the drive of a machine that was moved, and leaves the others alone', async () => {
    const { lab, vm, images } = await beginRemoval()
    vm.node = 'pve2'
    vm.config.ide3 = vm.config.ide2!
    vm.config.ide2 = 'seeds:iso/seed.iso.other.iso,media=cdrom'
    images.retire('machine', { node: 'pve1', vmid: VMID, volid: VOLID })
    await until(() => lab.seeds().length === 0, 'the image is gone', 20_000)
    expect(vm.config).toMatchObject({
      ide2: 'seeds:iso/seed.iso.other.iso,media=cdrom',
      ide3: 'none,media=cdrom',
    })
  })

  it('is not done twice', async () => {
    const { lab, vm, images, answers } = await beginRemoval()
    vm.config.ide2 = 'none,media=cdrom'
    lab.emulator.state.volumes.clear()
    images.retire('machine', { node: 'pve1', vmid: VMID, volid: VOLID })
    await until(() => answers.some(path => path.endsWith('/content')), 'it is looked for', 20_000)
    await images.discard('machine', { node: 'pve1', volid: VOLID }, never)
    expect(sent(lab, DELETED)).toBe(0)
  })
})
