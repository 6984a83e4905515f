import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { until } from '../../support/engine.ts'
import { newVm, type Vm } from '../../support/pve/state.ts'
import { type Cluster, failureOf, startCluster } from '../../support/pve.ts'
import { rawRequest } from '../../support/raw.ts'

let cluster: Cluster
let vm: Vm
beforeEach(async () => {
  cluster = await startCluster()
  vm = newVm(500, 'pve1', { name: 'guest', scsi0: 'shared:vm-500-disk-0,size=8G' })
  vm.status = 'running'
  cluster.emulator.state.vms.set(500, vm)
})
afterEach(() => cluster.close())

const migrate = async (params: Record<string, string | boolean>) => {
  const root = cluster.root()
  return root.waitTask(await root.post<string>('/nodes/pve1/qemu/500/migrate', params))
}

describe('a guest that is migrated', () => {
  it('runs on, locked until it is on the other node, and is gone from the first', async () => {
    const root = cluster.root()
    await root.version()
    cluster.emulator.faults.addTask({ type: 'qmigrate', slower: 200 })
    const moved = migrate({ target: 'pve2', online: true })
    await until(() => vm.config.lock === 'migrate', 'it is on its way')
    expect((await failureOf(root.put('/nodes/pve1/qemu/500/config', { cores: 2 }))).message).toContain(
      'got timeout',
    )
    await moved
    expect(vm).toMatchObject({ node: 'pve2', status: 'running' })
    expect(vm.config.lock).toBeUndefined()
    expect((await failureOf(root.get('/nodes/pve1/qemu/500/status/current'))).message).toContain(
      "'nodes/pve1/qemu-server/500.conf' does not exist",
    )
    expect(await root.get('/nodes/pve2/qemu/500/status/current')).toMatchObject({ status: 'running' })
    expect(await root.get('/cluster/resources', { type: 'vm' })).toContainEqual(
      expect.objectContaining({ vmid: 500, node: 'pve2' }),
    )
  })

  it.each([
    [{ target: 'pve2' }, "can't migrate running VM without --online"],
    [{ target: 'pve1', online: true }, 'target is local node.'],
    [{ target: 'pve9', online: true }, "no such cluster node 'pve9'"],
  ])('is refused with %o', async (params, words) => {
    expect((await failureOf(migrate(params))).message).toContain(words)
    expect(vm.node).toBe('pve1')
  })

  it.each([
    ['ide2', 'seeds:iso/a.iso,media=cdrom', "can't migrate local disk 'seeds:iso/a.iso': local cdrom image"],
    ['scsi1', 'local-lvm:vm-500-disk-1,size=1G', 'without with-local-disks option'],
  ])('stays because of a local %s', async (key, value, words) => {
    vm.config[key] = value
    const error = await failureOf(migrate({ target: 'pve2', online: true }))
    expect(error.message).toContain('migration aborted')
    expect((error.details as { log: string[] }).log.join('\n')).toContain(words)
    expect(vm).toMatchObject({ node: 'pve1', status: 'running' })
    expect(vm.config.lock).toBeUndefined()
  })

  it('needs a right of its own', async () => {
    vm.pool = 'jobs'
    const post = cluster.connect().post('/nodes/pve1/qemu/500/migrate', { target: 'pve2', online: true })
    expect((await failureOf(post)).message).toContain('VM.Migrate')
  })
})

describe('the three workers of a node', () => {
  it('are enough for three calls that wait; the others wait for them, but not those of another node', async () => {
    const { state } = cluster.emulator
    state.timing.lockTimeoutMs = 1000
    const ended: string[] = []
    const note = (name: string) => () => void ended.push(name)
    const held = state.locks.hold('vm-500', { timeoutMs: 1, message: '' }, () =>
      until(() => ended.includes('other node'), 'the other node answers'),
    )
    const roots = Array.from({ length: 3 }, () => cluster.root())
    const waiting = roots.map(root =>
      root.put('/nodes/pve1/qemu/500/config', { cores: 2 }).then(note('config')),
    )
    const puts = () => cluster.emulator.requests.filter(line => line.startsWith('PUT')).length
    await until(() => puts() === 3, 'three calls wait for the lock')
    const root = cluster.root()
    await root.get('/nodes/pve2/qemu')
    const look = root.get('/nodes/pve1/qemu/9000/config').then(note('same node'))
    await until(() => cluster.emulator.requests.some(line => line.includes('9000')), 'a fourth is sent')
    await root.get('/nodes/pve2/qemu').then(note('other node'))
    await Promise.all([...waiting, look, held])
    expect(ended[0]).toBe('other node')
    expect(ended.indexOf('same node')).toBeGreaterThan(1)
  })
})

describe('a request with more headers than pveproxy reads', () => {
  const lines = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, 'y']))

  it.each([
    ['64 lines', lines(62)],
    ['8 KiB', { 'x-long': 'y'.repeat(9000) }],
  ])('gets no answer: %s', async (_, headers) => {
    await expect(rawRequest(cluster.emulator, 'GET /api2/json/version', { headers })).rejects.toThrow(
      /hang up|ECONNRESET/,
    )
  })

  it('is answered below that', async () => {
    const answer = await rawRequest(cluster.emulator, 'GET /api2/json/version', { headers: lines(55) })
    expect(answer.status).toBe(200)
  })
})
