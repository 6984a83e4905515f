import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { GuestSpec } from '../../../src/dev/pve/guests/driver.ts'
import { newVm, type State } from '../../../src/dev/pve/state.ts'
import { readIso } from '../../../src/guest/iso-reader.ts'
import { templateSeed } from '../../../src/guest/template-seed.ts'
import { checkRights } from '../../../src/proxmox/permissions.ts'
import { performSetup } from '../../../src/proxmox/setup.ts'
import { buildTemplate, templateLines } from '../../../src/proxmox/template.ts'
import { type Cluster, failureOf, startCluster } from '../../support/pve.ts'

let cluster: Cluster
beforeEach(async () => {
  cluster = await startCluster()
})
afterEach(() => cluster.close())

const WISH = {
  major: 9,
  user: 'worker@pve',
  tokenName: 'one',
  template: 9000,
  pool: 'work',
  diskStorages: ['shared', 'local-lvm'],
  seedStorage: 'seeds',
  bridge: 'vmbr0',
}

describe('the set-up', () => {
  it('gives a new token exactly what jobs need', async () => {
    const { steps, secret } = await performSetup(cluster.root().request, WISH)
    expect(steps).toEqual(
      expect.arrayContaining([
        'made pool work',
        'made token worker@pve!one',
        'granted DeputyJobs on /pool/work',
      ]),
    )
    const token = cluster.connect({
      PROXMOX_USER: 'worker@pve',
      PROXMOX_TOKEN_NAME: 'one',
      PROXMOX_TOKEN_VALUE: secret!,
    })
    expect(await checkRights(token.request, { ...WISH, tokenId: 'worker@pve!one' })).toEqual({
      missing: [],
      commands: [],
    })
    expect(await token.get('/access/permissions', { path: '/' })).toEqual({})
  })

  it('gives disks and seeds on one storage the rights of both, on a vnet of the SDN too', async () => {
    cluster.emulator.state.vnets.set('tenant', 'lab')
    const wish = { ...WISH, diskStorages: ['shared'], seedStorage: 'shared', bridge: 'tenant', zone: 'lab' }
    const { secret } = await performSetup(cluster.root().request, wish)
    const token = cluster.connect({
      PROXMOX_USER: 'worker@pve',
      PROXMOX_TOKEN_NAME: 'one',
      PROXMOX_TOKEN_VALUE: secret!,
    })
    expect((await checkRights(token.request, wish)).missing).toEqual([])
    const held = await token.get<Record<string, object>>('/access/permissions', { path: '/storage/shared' })
    expect(Object.keys(held['/storage/shared']!)).toEqual(
      expect.arrayContaining(['Datastore.AllocateSpace', 'Datastore.AllocateTemplate', 'Datastore.Allocate']),
    )
  })

  it('can be repeated, and mends what was taken away', async () => {
    const root = cluster.root()
    await performSetup(root.request, WISH)
    cluster.emulator.state.roles.get('DeputyJobs')!.clear()
    const again = await performSetup(root.request, WISH)
    expect(again.secret).toBeUndefined()
    expect(again.steps).toContain('pool work is there')
    expect(cluster.emulator.state.roles.get('DeputyJobs')!.has('VM.Allocate')).toBe(true)
  })

  it('is refused to those who are no administrator, in the words of Proxmox VE', async () => {
    expect((await failureOf(performSetup(cluster.connect().request, WISH))).message).toContain(
      'Pool.Allocate',
    )
  })
})

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
    expect(config.scsi0).toMatch(/^local-lvm:vm-9100-disk-0/)
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
    expect(JSON.parse(seen[0]!.slice(14))).toMatchObject({ packages: ['curl', 'qemu-guest-agent'] })
    const { config } = state.vms.get(9100)!
    expect(config).toMatchObject({ template: '1', boot: 'order=scsi0' })
    expect(config.ide2).toBeUndefined()
    expect(leftovers(state)).toEqual([])
  })

  it('leaves nothing behind when the first boot does not end', async () => {
    const { root, state } = await withGuests(() => {})
    const prepare = { storage: 'seeds', seed: templateSeed('one') }
    const error = await failureOf(buildTemplate(root, { ...WANTED, prepare, prepareMs: 200 }))
    expect(error.message).toContain('did not switch itself off')
    expect(state.vms.has(9100)).toBe(false)
    expect(leftovers(state)).toEqual([])
    expect([...state.volumes.keys()].join()).not.toContain('9100')
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
