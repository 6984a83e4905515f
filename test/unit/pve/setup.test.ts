import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkPermissions } from '../../../src/proxmox/check-permissions.ts'
import { performSetup } from '../../../src/proxmox/cluster-setup.ts'
import { pveumLines } from '../../../src/proxmox/pveum.ts'
import { runPveum } from '../../support/pve/pveum.ts'
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
        'created pool work',
        'created token worker@pve!one',
        'granted DeputyJobs on /pool/work',
      ]),
    )
    const token = cluster.connect({
      PROXMOX_USER: 'worker@pve',
      PROXMOX_TOKEN_NAME: 'one',
      PROXMOX_TOKEN_VALUE: secret!,
    })
    expect(await checkPermissions(token.request, { ...WISH, tokenId: 'worker@pve!one' })).toEqual({
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
    expect((await checkPermissions(token.request, wish)).missing).toEqual([])
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
    expect(again.steps).toContain('pool work exists')
    expect(cluster.emulator.state.roles.get('DeputyJobs')!.has('VM.Allocate')).toBe(true)
  })

  it('for a second user who needs less takes nothing from the first', async () => {
    const root = cluster.root()
    const first = { ...WISH, diskStorages: ['shared'], seedStorage: 'shared' }
    const { secret } = await performSetup(root.request, first)
    const { seedStorage: _, ...second } = { ...first, user: 'other@pve' }
    await performSetup(root.request, second)
    const token = cluster.connect({
      PROXMOX_USER: 'worker@pve',
      PROXMOX_TOKEN_NAME: 'one',
      PROXMOX_TOKEN_VALUE: secret!,
    })
    expect((await checkPermissions(token.request, first)).missing).toEqual([])
  })

  it('keeps what an administrator has added to a role', async () => {
    const root = cluster.root()
    await performSetup(root.request, WISH)
    cluster.emulator.state.roles.get('DeputyJobs')!.add('VM.Snapshot')
    await performSetup(root.request, { ...WISH, user: 'other@pve' })
    await runPveum(
      root.request,
      pveumLines(WISH).filter(line => line.includes('DeputyJobs')),
    )
    expect(cluster.emulator.state.roles.get('DeputyJobs')!.has('VM.Snapshot')).toBe(true)
  })

  it('is refused to those who are no administrator, in the words of Proxmox VE', async () => {
    expect((await failureOf(performSetup(cluster.connect().request, WISH))).message).toContain(
      'Pool.Allocate',
    )
  })
})
