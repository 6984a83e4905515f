import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { proxmoxDetails } from '../../../src/proxmox/proxmox-errors.ts'
import { runPveum } from '../../support/pve/pveum.ts'
import { newVm } from '../../support/pve/state.ts'
import { type Cluster, failureOf, startCluster } from '../../support/pve.ts'

let cluster: Cluster
beforeEach(async () => {
  cluster = await startCluster()
})
afterEach(() => cluster.close())

const linesOf = (hint: string | undefined): string[] =>
  (hint ?? '').split('\n').filter(line => line.startsWith('pveum '))

describe('a refusal for want of a privilege', () => {
  it('is mended by the lines of its hint, which take away nothing that was inherited', async () => {
    const { state } = cluster.emulator
    state.vms.set(150, newVm(150, 'pve1', { name: 'web' }))
    state.roles.set('PVEAuditor', new Set(['VM.Audit', 'Sys.Audit', 'Pool.Audit']))
    for (const who of ['deputy@pve', 'deputy@pve!jobs'])
      state.acl.push({ path: '/', who, role: 'PVEAuditor', propagate: true })
    const token = cluster.connect()
    const start = () => token.post('/nodes/pve1/qemu/150/status/start')
    const { hint } = await failureOf(start())
    expect(hint).toContain('VM.PowerMgmt on /vms/150')
    await runPveum(cluster.root().request, linesOf(hint))
    await expect(start()).resolves.toContain('UPID:')
    await expect(token.get('/nodes/pve1/qemu/150/config')).resolves.toMatchObject({ name: 'web' })
  })

  it('is mended for rights that jobs never need', async () => {
    const token = cluster.connect()
    const { hint } = await failureOf(token.get('/nodes/pve1/syslog'))
    await runPveum(cluster.root().request, linesOf(hint))
    await expect(token.get('/nodes/pve1/syslog')).resolves.toHaveLength(1)
  })

  it('asks for the first of those of which one is enough', async () => {
    const { state } = cluster.emulator
    state.vms.set(150, newVm(150, 'pve1', { name: 'web', agent: '1' }))
    const { hint } = await failureOf(cluster.connect().post('/nodes/pve1/qemu/150/agent/ping'))
    expect(hint).toContain('VM.GuestAgent.Audit on /vms/150')
    expect(hint).not.toContain('Unrestricted')
  })
})

describe('an operation that no privilege allows', () => {
  it('to a token says that it takes a ticket', async () => {
    const error = await failureOf(
      cluster.connect().put('/access/password', { userid: 'deputy@pve', password: 'x' }),
    )
    expect(error.code).toBe('denied')
    expect(proxmoxDetails(error)).toMatchObject({ kind: 'ticket_only' })
    expect(error.hint).toMatch(/PROXMOX_PASSWORD.*pvesh set \/access\/password/)
    expect(error.hint).not.toContain('pveum')
  })

  it.each([
    ['a call', '/nodes/pve1/disks/wipedisk', { disk: '/dev/sdb' }],
    ['a setting', '/nodes/pve1/qemu/150/config', { args: '-x' }],
  ])('to anybody but root says so: %s', async (_, path, params) => {
    cluster.emulator.state.vms.set(150, { ...newVm(150, 'pve1', { name: 'web' }), pool: 'jobs' })
    const error = await failureOf(cluster.connect().put(path, params))
    expect(error.code).toBe('denied')
    expect(proxmoxDetails(error)).toMatchObject({ kind: 'root_only' })
    expect(error.hint).toContain(`pvesh set ${path}`)
    expect(error.hint).not.toContain('pveum')
  })
})
