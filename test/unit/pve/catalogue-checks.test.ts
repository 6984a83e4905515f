import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { writeCache } from '../../../src/proxmox/catalogue/catalogue-cache.ts'
import type { Operation as Known } from '../../../src/proxmox/catalogue/catalogue-operation.ts'
import { silentLogger } from '../../../src/proxmox/logger.ts'
import type { ProxmoxOptions } from '../../../src/proxmox/proxmox-client.ts'
import { systemClock } from '../../../src/proxmox/proxmox-clock.ts'
import { proxmoxDetails } from '../../../src/proxmox/proxmox-errors.ts'
import { until } from '../../support/engine.ts'
import { renderApidoc } from '../../support/pve/apidoc.ts'
import type { Operation } from '../../support/pve/operation.ts'
import { OPERATIONS } from '../../support/pve/operations/index.ts'
import { newVm } from '../../support/pve/state.ts'
import { type Cluster, failureOf, startCluster } from '../../support/pve.ts'

let cluster: Cluster
let cacheDir = ''
beforeEach(async () => {
  cluster = await startCluster()
  cacheDir = await mkdtemp(join(tmpdir(), 'catalogue-'))
})
afterEach(async () => {
  await cluster.close()
  await rm(cacheDir, { recursive: true })
})

const root = (more: ProxmoxOptions = {}) =>
  cluster.connect(
    {
      PROXMOX_USER: 'root@pam',
      PROXMOX_TOKEN_NAME: '',
      PROXMOX_TOKEN_VALUE: '',
      PROXMOX_PASSWORD: cluster.emulator.standard.rootPassword,
    },
    { cacheDir, ...more },
  )
const requests = (part: string) => cluster.emulator.requests.filter(line => line.includes(part)).length
const CONFIG = '/nodes/pve1/qemu/500/config'
const addGuest = () => cluster.emulator.state.vms.set(500, newVm(500, 'pve1', { name: 'guest' }))

/** The documentation of the emulated host with one operation told otherwise. */
const documentation = (method: string, path: string, change: (one: Operation) => Operation): string =>
  renderApidoc(OPERATIONS.map(one => (one.method === method && one.path === path ? change(one) : one)))
const UPDATE = ['PUT', '/nodes/{node}/qemu/{vmid}/config'] as const

describe('a client with a place for the catalogue', () => {
  it('fetches it by itself, and then sends no call that the host is known to refuse', async () => {
    addGuest()
    const client = root()
    await client.get('/nodes')
    await until(() => requests('apidoc.js') === 1, 'the catalogue is fetched')
    await client.catalogue()
    const error = await failureOf(client.put(CONFIG, { cores: 0, onboot: 'true', tags: 'a' }))
    expect(error).toMatchObject({ code: 'invalid', retryable: false })
    expect(error.message).toBe(
      `PUT ${CONFIG} was not sent: 'cores' must be at least 1; 'onboot' must be 1 or 0, not "true".`,
    )
    expect(error.hint).toContain('9.1.4')
    expect(proxmoxDetails(error)).toMatchObject({
      kind: 'parameters',
      errors: { cores: expect.any(String), onboot: expect.any(String) },
    })
    expect(requests('PUT')).toBe(0)
    await client.put(CONFIG, { cores: 2, onboot: true, net0: 'virtio,bridge=vmbr0' })
    expect(cluster.emulator.state.vms.get(500)!.config.cores).toBe('2')
  })

  it('misses what is required, and sends no file that an older host does not take', async () => {
    const { state } = cluster.emulator
    state.apidoc = documentation('POST', '/nodes/{node}/storage/{storage}/upload', one => ({
      ...one,
      params: { ...one.params, content: { type: 'string', enum: ['iso', 'vztmpl'] } },
    }))
    const client = root()
    await client.catalogue()
    const clone = await failureOf(client.post('/nodes/pve1/qemu/9000/clone', { name: 'a' }))
    expect(clone.message).toContain("'newid' is required")
    const file = { node: 'pve1', storage: 'local', filename: 'x.iso', file: Buffer.from('x') }
    const refused = await failureOf(client.upload({ ...file, filename: 'x.raw', content: 'import' }))
    expect(refused.message).toContain(`'content' must be one of iso, vztmpl, not "import"`)
    expect(requests('POST /api2/json/nodes')).toBe(0)
    await client.upload({ ...file, content: 'iso' })
  })

  it('lets no call wait for it', async () => {
    cluster.emulator.faults.addRequest({ match: 'apidoc.js', delayMs: 60_000 })
    const client = root()
    await client.get('/nodes')
    await client.get('/cluster/resources')
    await until(() => requests('apidoc.js') === 1, 'the catalogue is asked for')
    await client.get('/nodes')
  })

  it('asks for it once, and not again from a host that has none', async () => {
    cluster.emulator.faults.addRequest({ match: 'apidoc.js', status: 500 })
    let now = 0
    const client = root({ clock: { ...systemClock, now: () => now } })
    await client.get('/nodes')
    await until(() => requests('apidoc.js') === 2, 'both hosts were asked')
    await client.catalogue()
    for (let i = 0; i < 3; i++) await client.get('/nodes')
    expect(requests('apidoc.js')).toBe(2)
    now = 700_000
    await client.get('/nodes')
    await until(() => requests('apidoc.js') === 4, 'they are asked again')
  })
})

it('asks for nothing without such a place', async () => {
  await cluster.connect().get('/nodes')
  await cluster.connect().get('/nodes')
  expect(cluster.emulator.requests).toEqual(['GET /api2/json/nodes', 'GET /api2/json/nodes'])
})

describe('what the catalogue does not know', () => {
  it('is sent: documentation that is older than its host lacks parameters', async () => {
    addGuest()
    const {
      'destroy-unreferenced-disks': _,
      purge: __,
      ...older
    } = OPERATIONS.find(one => one.method === 'DELETE' && one.path === '/nodes/{node}/qemu/{vmid}')!.params!
    cluster.emulator.state.apidoc = documentation('DELETE', '/nodes/{node}/qemu/{vmid}', one => ({
      ...one,
      params: older,
    }))
    const told: object[] = []
    const client = root({ logger: { ...silentLogger, debug: fields => void told.push(fields) } })
    await client.catalogue()
    await client.waitTask(
      await client.delete('/nodes/pve1/qemu/500', { purge: true, 'destroy-unreferenced-disks': true }),
    )
    expect(cluster.emulator.state.vms.has(500)).toBe(false)
    expect(told).toContainEqual(expect.objectContaining({ param: 'destroy-unreferenced-disks' }))
  })

  it('is sent: a host that has learnt a path since', async () => {
    cluster.emulator.state.apidoc = renderApidoc(OPERATIONS.filter(one => one.path !== '/nodes'))
    const client = root()
    expect((await client.catalogue()).describe('GET', '/nodes')).toBeUndefined()
    expect(await client.get('/nodes')).toHaveLength(2)
  })

  it.each([
    ['no schema', 'it moved'],
    ['half a schema', 'const apiSchema = [{"path":"/nodes","info":{"GET":\n;'],
    ['a page', '<html><body>[1]\n; not here</body></html>'],
    ['holes', `const apiSchema = [null,{"path":"/nodes","info":{"GET":{"parameters":7,"returns":[]}}}]\n;`],
    [
      'types that nobody knows',
      `const apiSchema = [{"path":"/nodes/{node}/qemu/{vmid}/config","info":{"PUT":{"parameters":{"properties":{"cores":{"type":"flux","minimum":"many","enum":null,"optional":1,"pattern":"(?<broken"},"node":null,"vmid":3}}}}}]\n;`,
    ],
  ])('is no reason to fail: %s', async (_, apidoc) => {
    addGuest()
    cluster.emulator.state.apidoc = apidoc
    const client = root()
    await client.get('/nodes')
    await client.catalogue()
    await client.put(CONFIG, { cores: 3 })
    expect(cluster.emulator.state.vms.get(500)!.config.cores).toBe('3')
  })

  it.each([
    ['[{"verb":"GET","path":"/nodes"},{"path":7},null]', 'host'],
    ['[{"verb":"GET","path":"/nodes","params":[null]}]', 'cache'],
  ])('is no reason to fail: a cache with %s', async (text, source) => {
    const client = root()
    await writeCache(cacheDir, await client.version(), JSON.parse(text) as Known[])
    expect((await client.catalogue()).source).toBe(source)
    expect(await client.get('/nodes')).toHaveLength(2)
  })
})

describe('a host that was upgraded meanwhile', () => {
  const narrow = () =>
    documentation(...UPDATE, one => ({
      ...one,
      params: { ...one.params, cores: { type: 'integer', maximum: 1 } },
    }))

  it('is asked for its version before a call is refused', async () => {
    addGuest()
    const { state } = cluster.emulator
    state.apidoc = narrow()
    let now = Date.now()
    const client = root({ clock: { ...systemClock, now: () => now } })
    await client.catalogue()
    expect((await failureOf(client.put(CONFIG, { cores: 2 }))).message).toContain('must be at most 1')
    state.apidoc = undefined
    state.version.version = '9.2.1'
    now += 120_000
    await client.put(CONFIG, { cores: 2 })
    expect(state.vms.get(500)!.config.cores).toBe('2')
    expect((await client.catalogue()).version).toBe('9.2.1')
  })

  it('gets the call when it does not tell its version', async () => {
    addGuest()
    cluster.emulator.state.apidoc = narrow()
    let now = Date.now()
    const client = root({ clock: { ...systemClock, now: () => now } })
    await client.catalogue()
    now += 120_000
    cluster.emulator.faults.addRequest({ match: 'GET /api2/json/version', status: 500 })
    await client.put(CONFIG, { cores: 2 })
    expect(cluster.emulator.state.vms.get(500)!.config.cores).toBe('2')
  })
})
