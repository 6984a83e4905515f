import { Agent, get } from 'node:https'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { GuestAgent, GuestDriver } from '../../support/pve/guests/driver.ts'
import { type Cluster, failureOf, startCluster } from '../../support/pve.ts'
import { form, rawRequest } from '../../support/raw.ts'

let cluster: Cluster
beforeEach(async () => {
  cluster = await startCluster()
})
afterEach(() => cluster.close())

const raw = (line: string, options?: Parameters<typeof rawRequest>[2]) =>
  rawRequest(cluster.emulator, line, options)
const clone = async (newid: number, more: Record<string, string | number | boolean> = {}) => {
  const pve = cluster.connect()
  return pve.waitTask(await pve.post<string>('/nodes/pve1/qemu/9000/clone', { newid, pool: 'jobs', ...more }))
}

describe('transport', () => {
  it('refuses without a body, late, and with a reason', async () => {
    const answer = await raw('GET /api2/json/version', { anonymous: true })
    expect(answer).toMatchObject({ status: 401, reason: 'No ticket', text: '' })
    expect(
      (await raw('GET /api2/json/version', { headers: { authorization: 'PVEAPIToken=a@pve!b=c' } })).text,
    ).toBe('')
  })

  it('takes the token after a space too, and prefers a bad cookie over a good token', async () => {
    const { user, tokenName, secret } = cluster.emulator.standard
    const headers = { authorization: `PVEAPIToken ${user}!${tokenName}=${secret}` }
    expect((await raw('GET /api2/json/version', { headers })).status).toBe(200)
    expect(
      (await raw('GET /api2/json/version', { headers: { ...headers, cookie: 'PVEAuthCookie=x' } })).status,
    ).toBe(401)
  })

  it.each([
    ['GET /api2/json/nothing', {}, 'not implemented'],
    ['GET /api2/xml/version', {}, 'no such file'],
    ['DELETE /api2/json/pools', form('poolid=x'), "Unexpected content for method 'DELETE'"],
    ['GET /api2/json/version', form('x=1'), "Unexpected content for method 'GET'"],
    [
      'POST /api2/json/pools',
      { headers: { 'transfer-encoding': 'chunked' }, body: 'poolid=x' },
      'chunked transfer encoding not supported',
    ],
    ['POST /api2/json/pools', form(`comment=${'x'.repeat(600_000)}`), 'for data too large'],
  ])('answers 501 in plain text to %s', async (line, options, words) => {
    const answer = await raw(line, options)
    expect(answer.status).toBe(501)
    expect(answer.text).toContain(words)
    expect(answer.headers['content-type']).toBe('text/plain')
  })

  it('closes the connection after an error and tells two things about a proxied one', async () => {
    expect((await raw('GET /api2/json/nothing')).headers.connection).toBe('close')
    const proxied = await raw('GET /api2/json/nodes/pve2/qemu')
    expect(proxied.raw.filter((_, index) => proxied.raw[index - 1]?.toLowerCase() === 'connection')).toEqual([
      'close',
      'Keep-Alive',
    ])
  })

  it('closes a connection with its hundredth answer', async () => {
    const { port } = cluster.emulator.endpoints[0]!
    const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false })
    const answers: string[] = []
    for (let i = 0; i < 101; i++)
      answers.push(
        await new Promise<string>((resolve, reject) => {
          const { standard } = cluster.emulator
          const headers = {
            authorization: `PVEAPIToken=${standard.user}!${standard.tokenName}=${standard.secret}`,
          }
          get({ host: '127.0.0.1', port, path: '/api2/json/version', agent, headers }, answer => {
            answer.resume()
            answer.on('end', () => resolve(String(answer.headers.connection)))
          }).on('error', reject)
        }),
      )
    agent.destroy()
    expect(answers.map((connection, i) => (connection === 'close' ? i : -1)).filter(i => i >= 0)).toEqual([
      99,
    ])
  })

  it('tells the message in the reason phrase alone before 8.4', async () => {
    await cluster.close()
    cluster = await startCluster({ version: '8.3.0', reasonOnly: true })
    const answer = await raw('GET /api2/json/nodes/pve1/qemu/555/status/current')
    expect(answer.json).toEqual({ data: null })
    expect(answer.reason).toContain('Permission check failed')
    expect((await failureOf(cluster.root().get('/nodes/pve1/qemu/555/status/current'))).message).toContain(
      "555.conf' does not exist",
    )
  })

  it('serves its documentation to anybody, once', async () => {
    const answer = await raw('GET /pve-docs/api-viewer/apidoc.js', { anonymous: true })
    expect(answer.text).toMatch(/^const apiSchema = \[/)
    const again = await raw('GET /pve-docs/api-viewer/apidoc.js', {
      headers: { 'if-modified-since': String(answer.headers['last-modified']) },
    })
    expect(again.status).toBe(304)
  })
})

describe('parameters', () => {
  it.each([
    ['newid=abc', 'newid', "type check ('integer') failed - got 'abc'"],
    ['newid=50', 'newid', 'value must have a minimum value of 100'],
    ['newid=200&full=true', 'full', "type check ('boolean') failed - got 'true'"],
    [
      'newid=200&nonsense=1',
      'nonsense',
      'property is not defined in schema and the schema does not allow additional properties',
    ],
    ['pool=jobs', 'newid', 'property is missing and it is not optional'],
    ['newid=200&format=x', 'format', "value 'x' does not have a value in the enumeration 'raw, qcow2, vmdk'"],
    ['newid=200&name=a_b', 'name', 'invalid format - value does not look like a valid DNS name'],
    [`newid=200&snapname=${'a'.repeat(41)}`, 'snapname', 'value may only be 40 characters long'],
  ])('of %s are refused', async (fields, name, words) => {
    const answer = await raw('POST /api2/json/nodes/pve1/qemu/9000/clone', form(fields))
    expect(answer.status).toBe(400)
    expect(answer.json).toMatchObject({ data: null, message: 'Parameter verification failed.\n' })
    expect(answer.json.errors?.[name]).toBe(words)
  })

  it('may come as JSON', async () => {
    const body = JSON.stringify({ newid: 200, pool: 'jobs', full: false })
    expect(
      (
        await raw('POST /api2/json/nodes/pve1/qemu/9000/clone', {
          body,
          headers: { 'content-type': 'application/json' },
        })
      ).status,
    ).toBe(200)
  })

  it.each([
    [
      'smbios1',
      `uuid=00000000-0000-0000-0000-000000000000,base64=1,serial=${'A'.repeat(500)}`,
      'only be 512',
    ],
    ['smbios1', 'serial=ds=nocloud;s=http://x/', 'regex pattern'],
    ['net0', 'bridge=vmbr0', 'format error'],
    ['net0', 'virtio,bridge=vmbr0,colour=1', 'colour'],
    ['sshkeys', 'ssh-ed25519 AAAA x', 'invalid urlencoded string'],
    ['tags', 'a b!', 'invalid characters in tag'],
    ['scsi31', 'x', 'not defined in schema'],
  ])('%s of a guest is checked', async (key, value, words) => {
    await clone(200)
    const error = await failureOf(cluster.connect().put('/nodes/pve1/qemu/200/config', { [key]: value }))
    expect(error.code).toBe('invalid')
    expect(error.message).toContain(words)
  })
})

describe('rights', () => {
  it('of a separated token are those that user and token share', async () => {
    const pve = cluster.connect()
    expect(await pve.get('/access/permissions', { path: '/pool/jobs' })).toMatchObject({
      '/pool/jobs': { 'VM.Allocate': 1 },
    })
    cluster.emulator.state.acl = cluster.emulator.state.acl.filter(rule => rule.who.includes('!'))
    expect(await pve.get('/access/permissions')).toEqual({})
  })

  it('reach a new guest only when its clone has ended', async () => {
    cluster.emulator.faults.addTask({ type: 'qmclone', step: 'copy', slower: 20 })
    const pve = cluster.connect()
    const upid = await pve.post<string>('/nodes/pve1/qemu/9000/clone', { newid: 200, pool: 'jobs' })
    await expect.poll(() => cluster.emulator.state.vms.has(200)).toBe(true)
    expect((await failureOf(pve.get('/nodes/pve1/qemu/200/status/current'))).message).toContain(
      '(/vms/200, VM.Audit)',
    )
    await pve.waitTask(upid)
    expect(await pve.get('/nodes/pve1/qemu/200/status/current')).toMatchObject({ status: 'stopped' })
  })

  it('to clone without the pool are refused without a word why', async () => {
    const error = await failureOf(cluster.connect().post('/nodes/pve1/qemu/9000/clone', { newid: 200 }))
    expect(error.message).toMatch(/Permission check failed$/)
  })

  it('of root do not help a token past what only root may set', async () => {
    const root = cluster.root()
    const { value } = await root.post<{ value: string }>('/access/users/root@pam/token/full', {
      privsep: false,
    })
    const token = cluster.connect({
      PROXMOX_USER: 'root@pam',
      PROXMOX_TOKEN_NAME: 'full',
      PROXMOX_TOKEN_VALUE: value,
    })
    await clone(200)
    expect((await failureOf(token.put('/nodes/pve1/qemu/200/config', { args: '-x' }))).code).toBe('denied')
    expect((await failureOf(token.post('/nodes/pve1/qemu/200/status/start', { skiplock: true }))).code).toBe(
      'denied',
    )
    await root.put('/nodes/pve1/qemu/200/config', { args: '-x' })
  })

  it('are named by version', async () => {
    const error = await failureOf(cluster.root().post('/access/roles', { roleid: 'x', privs: 'VM.Monitor' }))
    expect(error.message).toContain("invalid privilege 'VM.Monitor'")
  })

  it('to delete an image are not those to upload one', async () => {
    cluster.emulator.state.roles.get('DeputySeeds')!.delete('Datastore.Allocate')
    const pve = cluster.connect()
    await pve.upload({
      node: 'pve1',
      storage: 'seeds',
      content: 'iso',
      filename: 'a.iso',
      file: Buffer.from('x'),
    })
    const error = await failureOf(pve.delete('/nodes/pve1/storage/seeds/content/seeds%3Aiso%2Fa.iso'))
    expect(error.message).toContain('(/storage/seeds, Datastore.Allocate)')
  })

  it('decide who sees load and pools', async () => {
    await clone(200)
    const [node] = await cluster.connect().get<object[]>('/nodes')
    expect(node).not.toHaveProperty('maxmem')
    expect((await cluster.root().get<object[]>('/nodes'))[0]).toHaveProperty('maxmem')
    cluster.emulator.state.roles.get('DeputyJobs')!.delete('Pool.Audit')
    const vms = await cluster.connect().get<{ vmid: number }[]>('/cluster/resources', { type: 'vm' })
    expect(vms.find(vm => vm.vmid === 200)).not.toHaveProperty('pool')
  })
})

describe('clones', () => {
  it('of one id at the same time: every call gets a task, one task succeeds', async () => {
    cluster.emulator.faults.addTask({ type: 'qmclone', step: 'copy', slower: 30 })
    const pve = cluster.connect()
    const upids = await Promise.all(
      [1, 2, 3].map(() => pve.post<string>('/nodes/pve1/qemu/9000/clone', { newid: 200, pool: 'jobs' })),
    )
    const ends = await Promise.allSettled(upids.map(upid => pve.waitTask(upid)))
    expect(ends.filter(end => end.status === 'fulfilled')).toHaveLength(1)
    for (const end of ends)
      if (end.status === 'rejected') expect(end.reason.message).toMatch(/config file already exists/)
  })

  it('copy everything but what must be unique, firewall included', async () => {
    await cluster.root().put('/nodes/pve1/qemu/9000/firewall/options', { enable: true, policy_out: 'DROP' })
    await clone(200)
    const template = cluster.emulator.state.vms.get(9000)!
    const copy = cluster.emulator.state.vms.get(200)!
    expect(copy.firewall.options).toEqual({ enable: 1, policy_out: 'DROP' })
    expect(copy.config).toMatchObject({ agent: '1', scsihw: 'virtio-scsi-single' })
    for (const key of ['net0', 'smbios1', 'vmgenid']) expect(copy.config[key]).not.toBe(template.config[key])
    expect(copy.config).not.toHaveProperty('template')
  })

  it.each([
    [{ storage: 'shared' }, "parameter 'storage' not allowed for linked clones"],
    [{ target: 'pve9' }, "no such cluster node 'pve9'"],
  ])('with %o are refused', async (params, words) => {
    expect((await failureOf(clone(200, params))).message).toContain(words)
  })

  it('cannot leave a local storage, and can a shared one', async () => {
    const pve = cluster.connect()
    const error = await failureOf(
      pve.post('/nodes/pve1/qemu/9001/clone', { newid: 200, pool: 'jobs', target: 'pve2' }),
    )
    expect(error.message).toContain("can't clone VM to node 'pve2' (VM uses local storage)")
    await clone(201, { target: 'pve2' })
    expect(cluster.emulator.state.vms.get(201)?.node).toBe('pve2')
  })

  it('leave nothing behind when the storage is full', async () => {
    const before = cluster.emulator.state.volumes.size
    cluster.emulator.state.storages.get('shared')!.total = 1
    const error = await failureOf(clone(200, { full: true }))
    expect(error.message).toContain('No space left on device')
    expect(cluster.emulator.state.vms.has(200)).toBe(false)
    expect(cluster.emulator.state.volumes.size).toBe(before)
  })

  it('hold their source against changes', async () => {
    cluster.emulator.faults.addTask({ type: 'qmclone', step: 'copy', slower: 60 })
    const pve = cluster.root()
    const upid = await pve.post<string>('/nodes/pve1/qemu/9000/clone', { newid: 200 })
    await expect.poll(() => cluster.emulator.state.vms.has(200)).toBe(true)
    expect((await failureOf(pve.put('/nodes/pve1/qemu/9000/config', { cores: 2 }))).message).toContain(
      "can't lock file '/var/lock/qemu-server/lock-9000.conf' - got timeout",
    )
    expect(
      (
        await failureOf(
          pve.post<string>('/nodes/pve1/qemu/200/status/start').then(start => pve.waitTask(start)),
        )
      ).message,
    ).toContain('lock-200.conf')
    await pve.waitTask(upid)
  })
})

describe('guests', () => {
  it('cannot be destroyed while they run, and take their disks along', async () => {
    const pve = cluster.connect()
    await clone(200)
    await pve.waitTask(await pve.post('/nodes/pve1/qemu/200/status/start'))
    expect((await failureOf(pve.delete('/nodes/pve1/qemu/200'))).message).toContain(
      'VM 200 is running - destroy failed',
    )
    await pve.waitTask(await pve.post('/nodes/pve1/qemu/200/status/stop'))
    await pve.waitTask(
      await pve.delete('/nodes/pve1/qemu/200', { purge: true, 'destroy-unreferenced-disks': true }),
    )
    expect([...cluster.emulator.state.volumes.values()].some(volume => volume.vmid === 200)).toBe(false)
  })

  it('are shown late and without a name in the list of resources', async () => {
    await cluster.close()
    cluster = await startCluster({ timing: { statCacheMs: 600_000 } })
    const pve = cluster.connect()
    await pve.get('/cluster/resources', { type: 'vm' })
    await clone(200)
    const find = async () =>
      (await pve.get<{ vmid: number }[]>('/cluster/resources', { type: 'vm' })).find(vm => vm.vmid === 200)
    expect(await find()).toMatchObject({ status: 'unknown' })
    expect(await find()).not.toHaveProperty('name')
    cluster.emulator.state.statCache.at = 0
    expect(await find()).toMatchObject({ status: 'stopped', name: expect.any(String) })
  })

  it.each([
    ['tags', 'Prod', 'invalid characters in tag'],
    ['agent', 'yes', 'enabled'],
    ['agent', '1,speed=2', 'speed'],
    ['memory', '8', 'minimum value of 16'],
    ['net0', 'virtio,bridge=vmbr0,firewall=yes', 'firewall'],
    ['net0', 'virtio,bridge=vmbr0,mtu=70000', 'mtu'],
    ['ide2', 'media=cdrom', 'file'],
    ['ide2', 'none,media=tape', 'media'],
  ])('refuse %s=%s', async (key, value, words) => {
    await clone(200)
    const answer = await raw(
      'PUT /api2/json/nodes/pve1/qemu/200/config',
      form(`${key}=${encodeURIComponent(value)}`),
    )
    expect(answer.status).toBe(400)
    expect(answer.json.errors?.[key]).toContain(words)
  })

  it.each([
    ['dest=everywhere!', 'dest'],
    ['dport=1234567', 'dport'],
    ['proto=carrier-pigeon', 'proto'],
  ])('refuse a firewall rule with %s', async (fields, key) => {
    await clone(200)
    const answer = await raw(
      'POST /api2/json/nodes/pve1/qemu/200/firewall/rules',
      form(`type=out&action=ACCEPT&${fields}`),
    )
    expect(answer.status).toBe(400)
    expect(answer.json.errors).toHaveProperty(key)
  })

  it('have a cloud-init image of their own, which goes with its drive', async () => {
    const { state } = cluster.emulator
    state.vms.get(9000)!.config.ide0 = 'shared:vm-9000-cloudinit,media=cdrom'
    await clone(200)
    expect(state.vms.get(200)!.config.ide0).toBe('shared:vm-200-cloudinit,media=cdrom')
    expect(state.volumes.has('shared:vm-200-cloudinit')).toBe(true)
    await cluster.connect().put('/nodes/pve1/qemu/200/config', { ide0: 'none,media=cdrom' })
    expect(state.volumes.has('shared:vm-200-cloudinit')).toBe(false)
  })

  it('keep a disk that another one replaces as unused, and lose it when all that is theirs goes', async () => {
    const { state } = cluster.emulator
    const pve = cluster.connect()
    await clone(200)
    await pve.put('/nodes/pve1/qemu/200/config', { scsi0: 'shared:1' })
    const { config } = state.vms.get(200)!
    expect(config.unused0).toBe('shared:vm-200-disk-0')
    expect(config.scsi0).toMatch(/^shared:vm-200-disk-1/)
    delete config.unused0
    await pve.waitTask(await pve.delete('/nodes/pve1/qemu/200', { 'destroy-unreferenced-disks': true }))
    expect([...state.volumes.keys()].filter(volid => volid.includes('vm-200'))).toEqual([])
  })

  it('grow but do not shrink', async () => {
    const pve = cluster.connect()
    await clone(200)
    await pve.waitTask(await pve.put('/nodes/pve1/qemu/200/resize', { disk: 'scsi0', size: '+2G' }))
    expect(cluster.emulator.state.vms.get(200)!.config.scsi0).toContain('size=10G')
    const shrink = pve
      .put<string>('/nodes/pve1/qemu/200/resize', { disk: 'scsi0', size: '1G' })
      .then(upid => pve.waitTask(upid))
    expect((await failureOf(shrink)).message).toContain('shrinking disks is not supported')
  })

  it('lose their uuid when the SMBIOS is set without it, and gain a boot entry with a drive', async () => {
    const pve = cluster.connect()
    await clone(200)
    await pve.upload({
      node: 'pve1',
      storage: 'seeds',
      content: 'iso',
      filename: 'a.iso',
      file: Buffer.from('x'),
    })
    await pve.put('/nodes/pve1/qemu/200/config', {
      smbios1: 'base64=1,serial=QUJD',
      ide2: 'seeds:iso/a.iso,media=cdrom',
    })
    expect(await pve.get('/nodes/pve1/qemu/200/config')).toMatchObject({
      smbios1: 'base64=1,serial=QUJD',
      boot: 'order=scsi0;ide2',
      memory: '1024',
      cores: 1,
    })
  })

  it('notice that somebody else changed them', async () => {
    const pve = cluster.connect()
    await clone(200)
    const { digest } = await pve.get<{ digest: string }>('/nodes/pve1/qemu/200/config')
    await pve.put('/nodes/pve1/qemu/200/config', { cores: 2, digest })
    const error = await failureOf(pve.put('/nodes/pve1/qemu/200/config', { cores: 3, digest }))
    expect(error).toMatchObject({ code: 'conflict', retryable: true })
  })

  it('are known by nextid, which reserves nothing', async () => {
    const pve = cluster.connect()
    expect(await pve.get('/cluster/nextid')).toBe('100')
    expect(await pve.get('/cluster/nextid')).toBe('100')
    expect((await failureOf(pve.get('/cluster/nextid', { vmid: 9000 }))).message).toContain(
      'VM 9000 already exists',
    )
  })

  it('can be brought back to a snapshot', async () => {
    const pve = cluster.root()
    await pve.waitTask(await pve.post('/nodes/pve1/qemu/9000/clone', { newid: 200 }))
    await pve.waitTask(await pve.post('/nodes/pve1/qemu/200/snapshot', { snapname: 'before' }))
    await pve.put('/nodes/pve1/qemu/200/config', { cores: 4 })
    await pve.waitTask(await pve.post('/nodes/pve1/qemu/200/snapshot/before/rollback'))
    expect(await pve.get('/nodes/pve1/qemu/200/config')).toMatchObject({ cores: 1 })
    expect(await pve.get('/nodes/pve1/qemu/200/snapshot')).toMatchObject([
      { name: 'before' },
      { name: 'current' },
    ])
  })
})

describe('uploads', () => {
  const part = (header: string, content: string) =>
    `--b\r\nContent-Disposition: form-data; ${header}\r\n\r\n${content}\r\n`
  const send = (parts: string) =>
    raw('POST /api2/json/nodes/pve1/storage/seeds/upload', {
      body: `${parts}--b--\r\n`,
      headers: { 'content-type': 'multipart/form-data; boundary=b' },
    })

  it('need their text before the file', async () => {
    const file = part('name="filename"; filename="a.iso"', 'x')
    expect((await send(file + part('name="content"', 'iso'))).json.errors).toMatchObject({
      content: 'property is missing and it is not optional',
    })
    expect((await send(part('name="content"', 'iso') + file)).status).toBe(200)
  })

  it('take no snippets', async () => {
    const answer = await send(
      part('name="content"', 'snippets') + part('name="filename"; filename="a.yml"', 'x'),
    )
    expect(answer.json.errors?.content).toContain('does not have a value in the enumeration')
  })

  it('change odd characters in the name and overwrite what is there', async () => {
    for (const content of ['one', 'two'])
      await send(part('name="content"', 'iso') + part('name="filename"; filename="a b.iso"', content))
    await expect
      .poll(() => cluster.emulator.state.volumes.get('pve1|seeds:iso/a_b.iso')?.data?.toString())
      .toBe('two')
  })
})

describe('the guest agent', () => {
  const files = new Map<string, Buffer>()
  const agent: GuestAgent = {
    exec: async () => 42,
    execStatus: pid => {
      if (pid !== 42 || files.has('fetched')) return undefined
      files.set('fetched', Buffer.alloc(0))
      return { exited: true, exitcode: 3, out: Buffer.from('hällo'), err: Buffer.alloc(0) }
    },
    readFile: async path => files.get(path) ?? Promise.reject(new Error(`failed to open file '${path}'`)),
    writeFile: async (path, content) => void files.set(path, content),
  }
  const guests: GuestDriver = {
    start: async () => ({ stop: async () => {}, shutdown: async () => true, agent: () => agent }),
  }
  const at = '/nodes/pve1/qemu/200/agent'

  beforeEach(async () => {
    files.clear()
    await cluster.close()
    cluster = await startCluster({ guests })
    await clone(200)
    const pve = cluster.connect()
    await pve.waitTask(await pve.post('/nodes/pve1/qemu/200/status/start'))
  })

  it('gives bytes as latin1, and the result of a command once', async () => {
    const pve = cluster.connect()
    const { pid } = await pve.post<{ pid: number }>(`${at}/exec`, { command: ['/bin/true', 'a'] })
    const status = await pve.get<{ 'out-data': string }>(`${at}/exec-status`, { pid })
    expect(status).toMatchObject({ exited: 1, exitcode: 3 })
    expect(Buffer.from(status['out-data'], 'latin1').toString()).toBe('hällo')
    expect((await failureOf(pve.get(`${at}/exec-status`, { pid }))).message).toContain(
      'PID ld does not exist',
    )
  })

  it('takes our own base64, and refuses wide characters in its own', async () => {
    const pve = cluster.connect()
    await pve.post(`${at}/file-write`, {
      file: '/x',
      content: Buffer.from('ünï→').toString('base64'),
      encode: false,
    })
    expect(files.get('/x')?.toString()).toBe('ünï→')
    expect((await failureOf(pve.post(`${at}/file-write`, { file: '/x', content: '→' }))).message).toContain(
      'Wide character',
    )
    expect(
      (await failureOf(pve.post(`${at}/file-write`, { file: '/x', content: 'x'.repeat(61_441) }))).code,
    ).toBe('invalid')
    expect((await failureOf(pve.get(`${at}/file-read`, { file: '/x', offset: 1 }))).code).toBe('invalid')
  })

  it('is gone until the reset once it was given a wide character in a command', async () => {
    const pve = cluster.connect()
    expect((await failureOf(pve.post(`${at}/exec`, { command: ['echo', '→'] }))).message).toContain(
      'got timeout',
    )
    expect((await failureOf(pve.post(`${at}/ping`))).message).toContain('QEMU guest agent is not running')
    await pve.waitTask(await pve.post('/nodes/pve1/qemu/200/status/reset'))
    await pve.post(`${at}/ping`)
  })

  it('is not asked when the configuration has none', async () => {
    const pve = cluster.connect()
    await pve.put('/nodes/pve1/qemu/200/config', { agent: '0' })
    expect((await failureOf(pve.post(`${at}/ping`))).message).toContain('No QEMU guest agent configured')
  })
})

it('firewall rules come first and do nothing unless enabled', async () => {
  const pve = cluster.connect()
  await clone(200)
  await pve.post('/nodes/pve1/qemu/200/firewall/rules', { type: 'out', action: 'ACCEPT', dest: '192.0.2.1' })
  await pve.post('/nodes/pve1/qemu/200/firewall/rules', { type: 'out', action: 'DROP', enable: 1 })
  expect(await pve.get('/nodes/pve1/qemu/200/firewall/rules')).toMatchObject([
    { pos: 0, action: 'DROP', enable: 1 },
    { pos: 1, action: 'ACCEPT', enable: 0 },
  ])
})
