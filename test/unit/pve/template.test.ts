import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { templateSeed } from '../../../src/guest/template-seed.ts'
import { buildTemplate, templateLines } from '../../../src/proxmox/build-template.ts'
import { until } from '../../support/engine.ts'
import { readIso } from '../../support/iso-reader.ts'
import type { GuestSpec } from '../../support/pve/guests/driver.ts'
import { newVm, type State } from '../../support/pve/state.ts'
import { type Cluster, failureOf, startCluster } from '../../support/pve.ts'

let cluster: Cluster
beforeEach(async () => {
  cluster = await startCluster()
})
afterEach(() => cluster.close())

const WANTED = {
  node: 'pve1',
  vmid: 9100,
  name: 'made',
  image: 'local:import/debian.qcow2',
  storage: 'local-lvm',
  bridge: 'vmbr0',
}

const leftovers = ({ volumes }: State) =>
  [...volumes.values()].filter(volume => volume.content === 'iso').map(volume => volume.volid)

/** A cluster with the image on it, whose guests do what they are told here. */
const withGuests = async (boot: (spec: GuestSpec) => void) => {
  await cluster.close()
  cluster = await startCluster({
    guests: {
      start: async spec => {
        boot(spec)
        return { stop: async () => {}, shutdown: async () => true, agent: () => undefined }
      },
    },
  })
  const root = cluster.root()
  const image = { content: 'import', filename: 'debian.qcow2', file: Buffer.from('disk') } as const
  await root.upload({ node: 'pve1', storage: 'local', ...image })
  return { root, state: cluster.emulator.state }
}

describe('a template', () => {
  it('is made of a disk image on a storage', async () => {
    const root = cluster.root()
    await root.upload({
      node: 'pve1',
      storage: 'local',
      content: 'import',
      filename: 'debian.qcow2',
      file: Buffer.from('disk'),
    })
    await buildTemplate(root, WANTED)
    const config = await root.get<Record<string, unknown>>('/nodes/pve1/qemu/9100/config')
    expect(config).toMatchObject({ template: 1, agent: 'enabled=1', name: 'made' })
    expect(config.scsi0).toMatch(/^local-lvm:base-9100-disk-0/)
  })

  it('is not made of something else', async () => {
    const wish = { ...WANTED, image: '/root/disk.qcow2' }
    expect((await failureOf(buildTemplate(cluster.root(), wish))).hint).toContain('import')
  })

  it('boots once to get what machines need, and is left clean', async () => {
    const seen: string[] = []
    const { root, state } = await withGuests(spec => {
      seen.push(readIso(spec.cdroms[0]!)!.files.get('user-data')!.toString())
      setTimeout(() => spec.poweredOff(), 30)
    })
    const prepare = { storage: 'seeds', seed: templateSeed('one') }
    await buildTemplate(root, { ...WANTED, prepare, prepareMs: 10_000 })
    expect(seen).toHaveLength(1)
    expect(seen[0]).toMatch(/^#cloud-config\n/)
    expect(JSON.parse(seen[0]!.slice(14))).toMatchObject({ runcmd: [['/bin/sh', '-c', expect.any(String)]] })
    const { config } = state.vms.get(9100)!
    expect(config).toMatchObject({ template: '1', boot: 'order=scsi0' })
    expect(config.ide2).toBeUndefined()
    expect(leftovers(state)).toEqual([])
  })

  it('leaves nothing behind when the first boot does not end', async () => {
    const { root, state } = await withGuests(() => {})
    const prepare = { storage: 'seeds', seed: templateSeed('one') }
    const error = await failureOf(buildTemplate(root, { ...WANTED, prepare, prepareMs: 200 }))
    expect(error.message).toContain('did not shut itself down')
    expect(state.vms.has(9100)).toBe(false)
    expect(leftovers(state)).toEqual([])
    expect([...state.volumes.keys()].join()).not.toContain('9100')
  })

  it('leaves nothing behind when its maker is interrupted at the first boot', async () => {
    const stop = new AbortController()
    const { root, state } = await withGuests(() => setTimeout(() => stop.abort(), 20))
    const prepare = { storage: 'seeds', seed: templateSeed('one') }
    const wish = { ...WANTED, prepare, prepareMs: 10_000, signal: stop.signal }
    expect(await failureOf(buildTemplate(root, wish))).toBe(stop.signal.reason)
    expect(state.vms.has(9100)).toBe(false)
    expect(leftovers(state)).toEqual([])
    expect([...state.volumes.keys()].join()).not.toContain('9100')
  })

  it('leaves nothing behind when its maker is interrupted at the import', async () => {
    const { root, state } = await withGuests(() => {})
    cluster.emulator.faults.addTask({ type: 'qmcreate', step: 'create', slower: 100_000 })
    const stop = new AbortController()
    const building = failureOf(buildTemplate(root, { ...WANTED, signal: stop.signal }))
    await until(() => state.vms.has(9100), 'the import runs')
    stop.abort()
    expect(await building).toBe(stop.signal.reason)
    await until(() => !state.vms.has(9100), 'it is gone')
    expect([...state.volumes.keys()].join()).not.toContain('9100')
  })

  it.each([
    ['goes on', { slower: 100_000, cancelMs: 0 }],
    ['is over before it can be ended', { slower: 1, cancelMs: 500 }],
  ])(
    'leaves nothing behind when its maker is interrupted while an import that %s is ordered',
    async (_, how) => {
      const { root, state } = await withGuests(() => {})
      const { faults, requests } = cluster.emulator
      faults.addTask({ type: 'qmcreate', step: 'create', slower: how.slower })
      faults.addRequest({ match: /^POST .*\/qemu$/, delayMs: 300 })
      faults.addRequest({ match: /^DELETE .*\/tasks\//, delayMs: how.cancelMs })
      const stop = new AbortController()
      const building = failureOf(buildTemplate(root, { ...WANTED, signal: stop.signal }))
      await until(() => requests.some(line => /^POST .*\/qemu$/.test(line)), 'it is ordered')
      stop.abort()
      expect(await building).toBe(stop.signal.reason)
      expect(state.vms.has(9100)).toBe(false)
      expect([...state.tasks.values()].map(task => task.type)).toContain('qmcreate')
      expect([...state.volumes.keys()].join()).not.toContain('9100')
    },
  )

  it('says that it was interrupted, and nothing of the call that was under way', async () => {
    const { root, state } = await withGuests(() => {})
    const { faults, requests } = cluster.emulator
    faults.addRequest({ match: /^PUT .*9100.config/, delayMs: 500 })
    const stop = new AbortController()
    const prepare = { storage: 'seeds', seed: templateSeed('one') }
    const building = failureOf(buildTemplate(root, { ...WANTED, prepare, signal: stop.signal }))
    await until(() => requests.some(line => /^PUT .*9100.config/.test(line)), 'the call is under way')
    stop.abort()
    expect(await building).toBe(stop.signal.reason)
    expect(state.vms.has(9100)).toBe(false)
  })

  it('waits for a first boot through an outage of the cluster', async () => {
    const { root, state } = await withGuests(spec => {
      const { faults } = cluster.emulator
      faults.addRequest({ match: '/qemu/9100/status/current', status: 596, reason: 'Connection timed out' })
      setTimeout(() => {
        spec.poweredOff()
        faults.clear()
      }, 1500)
    })
    const prepare = { storage: 'seeds', seed: templateSeed('one') }
    await buildTemplate(root, { ...WANTED, prepare, prepareMs: 10_000 })
    expect(state.vms.get(9100)?.config.template).toBe('1')
  })

  it('touches no VM that has the id already', async () => {
    const { root, state } = await withGuests(() => {})
    state.vms.set(9100, newVm(9100, 'pve1', { name: 'precious' }))
    expect((await failureOf(buildTemplate(root, WANTED))).message).toContain('already exists')
    expect(state.vms.get(9100)?.config.name).toBe('precious')
  })

  it('can be made by hand', () => {
    expect(
      templateLines({ vmid: 9100, name: 'made', storage: 'local-lvm', bridge: 'vmbr1' }).join('\n'),
    ).toMatch(/qm create 9100[\s\S]*bridge=vmbr1[\s\S]*qm template 9100/)
  })
})
