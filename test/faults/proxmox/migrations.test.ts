import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { createProxmox } from '../../../src/proxmox/proxmox-client.ts'
import { parseSettings } from '../../../src/proxmox/proxmox-settings.ts'
import { hasCurl } from '../../support/curl.ts'
import { until } from '../../support/engine.ts'
import { type Lab, type LabOptions, openLab } from '../../support/proxmox-provider.ts'

const never = new AbortController().signal
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** A job that counts until it is told that it is enough, in a machine that can be moved. */
const begin = async (options: LabOptions = {}) => {
  const lab = await openLab(options)
  closers.push(() => lab.close())
  const engine = await lab.open(lab.makeProvider())
  const enough = join(lab.directory, 'enough')
  const task = `i=0; until [ -e ${enough} ]; do i=$((i + 1)); echo $i; sleep 0.2; done; echo end`
  const { job_id } = await engine.deputy.submit({ task, runtime: 'proxmox' }, 'test')
  await until(async () => (await engine.deputy.get(job_id)).output_bytes > 0, 'it prints', 30_000)
  await until(() => lab.seeds().length === 0, 'its seed is out of the way', 30_000)
  const [vm] = lab.machines()
  const wait = () => engine.deputy.wait(job_id, { timeoutMs: 45_000, signal: never })
  return {
    lab,
    engine,
    vm: vm!,
    job_id,
    target: vm!.node === 'pve1' ? 'pve2' : 'pve1',
    printed: async () => (await engine.deputy.get(job_id)).output_bytes,
    wait,
    finish: () => {
      writeFileSync(enough, '')
      return wait()
    },
    /** Nothing is left, and where the machine went. */
    gone: async () => {
      await until(async () => (await engine.deputy.machines()).length === 0, 'the record is gone', 45_000)
      expect(lab.machines()).toEqual([])
      expect(lab.seeds()).toEqual([])
      const calls = lab.emulator.requests.map(line => /^DELETE .*\/nodes\/(\w+)\/qemu\/\d+\?/.exec(line)?.[1])
      return calls.filter(node => node !== undefined)
    },
  }
}

/** As an administrator does it. */
const migrate = async ({ emulator }: Lab, { node, vmid }: { node: string; vmid: number }, target: string) => {
  const { rootPassword } = emulator.standard
  const root = createProxmox(
    parseSettings({
      ...emulator.env(),
      ...{ PROXMOX_USER: 'root@pam', PROXMOX_PASSWORD: rootPassword },
      ...{ PROXMOX_TOKEN_NAME: '', PROXMOX_TOKEN_VALUE: '' },
    }),
  )
  closers.push(() => root.close())
  await root.waitTask(
    await root.post<string>(`/nodes/${node}/qemu/${vmid}/migrate`, { target, online: true }),
  )
}

const counted = (output: string): string => {
  const lines = output.split('\n').length - 2
  return `${Array.from({ length: lines }, (_, index) => `${index + 1}\n`).join('')}end\n`
}

describe.skipIf(!hasCurl)('a machine that is migrated in the middle of a job', () => {
  it('goes on with it, and is destroyed where it is then', async () => {
    const job = await begin()
    const { target } = job
    await migrate(job.lab, job.vm, target)
    expect(job.vm.node).toBe(target)
    const before = await job.printed()
    await until(async () => (await job.printed()) > before, 'it goes on', 20_000)
    expect((await job.finish()).status).toBe('success')
    const { output } = await job.engine.deputy.result(job.job_id, {})
    expect(output).toBe(counted(output))
    expect(await job.gone()).toEqual([target])
  })

  it('is found again through its guest agent', async () => {
    const job = await begin({ provider: { channel: 'agent' } })
    const { target } = job
    await migrate(job.lab, job.vm, target)
    const details = async () => (await job.engine.store.listMachines())[0]!.details
    await until(async () => (await details()).node === target, 'it is found', 30_000)
    const before = await job.printed()
    await until(async () => (await job.printed()) > before, 'it is heard of again', 30_000)
    expect((await job.finish()).status).toBe('success')
    expect(await job.gone()).toEqual([target])
  }, 90_000)

  it('is destroyed when it has arrived, if the job is cancelled on the way', async () => {
    const job = await begin()
    const { target } = job
    job.lab.emulator.faults.addTask({ type: 'qmigrate', slower: 200 })
    const moved = migrate(job.lab, job.vm, target)
    await until(() => job.vm.config.lock === 'migrate', 'it is on its way', 20_000)
    await job.engine.deputy.cancel(job.job_id, 'test')
    expect((await job.wait()).status).toBe('cancelled')
    await moved
    expect(await job.gone()).toEqual([target])
  })
})

describe.skipIf(!hasCurl)('a machine that the cluster started anew on another node', () => {
  it('fails its job as stale, and is destroyed there', async () => {
    const job = await begin({
      engine: {
        config: config => {
          config.supervision.heartbeat = 4
        },
      },
    })
    const { target } = job
    await job.lab.emulator.recover(job.vm.vmid, target)
    expect(job.vm).toMatchObject({ node: target, status: 'running' })
    const view = await job.wait()
    expect(view).toMatchObject({ status: 'failed', error: { code: 'stale' } })
    expect(await job.gone()).toEqual([target])
  })
})
