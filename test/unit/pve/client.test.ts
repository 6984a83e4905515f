import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createCertificate } from '../../../src/guest/certificate.ts'
import { checkPermissions } from '../../../src/proxmox/check-permissions.ts'
import { proxmoxDetails, UncertainError } from '../../../src/proxmox/proxmox-errors.ts'
import { type Cluster, failureOf, startCluster } from '../../support/pve.ts'

let cluster: Cluster
beforeEach(async () => {
  cluster = await startCluster()
})
afterEach(() => cluster.close())

const kindOf = async (promise: Promise<unknown>) => proxmoxDetails(await failureOf(promise))?.kind
const requests = (part: string) => cluster.emulator.requests.filter(line => line.includes(part)).length
/** A port of loopback where nobody listens: a node that was switched off leaves one. */
const deadEndpoint = async () => {
  await cluster.emulator.setNode('pve2', false)
  return `127.0.0.1:${cluster.emulator.endpoints[1]!.port}`
}

describe('trust', () => {
  const noPin = { PROXMOX_SSL_FINGERPRINT: '' }

  it('accepts the pinned certificate and nothing else', async () => {
    expect((await cluster.connect().version()).major).toBe(9)
    const other = createCertificate({ commonName: 'other' }).fingerprint
    const error = await failureOf(cluster.connect({ PROXMOX_SSL_FINGERPRINT: other }).version())
    expect(error.message).toContain(cluster.emulator.certificate.fingerprint)
    expect(error.hint).toContain(`PROXMOX_SSL_FINGERPRINT=${cluster.emulator.certificate.fingerprint}`)
    expect(proxmoxDetails(error)).toMatchObject({
      kind: 'tls',
      fingerprint: cluster.emulator.certificate.fingerprint,
    })
    expect(error.retryable).toBe(false)
  })

  it.each(['strict', 'verify'])(
    'refuses a self-signed certificate in %s mode without a pin, and prints its fingerprint',
    async mode => {
      const error = await failureOf(cluster.connect({ ...noPin, PROXMOX_SSL_MODE: mode }).version())
      expect(error.message).toContain(cluster.emulator.certificate.fingerprint)
    },
  )

  it('takes anything when told to be insecure', async () => {
    expect((await cluster.connect({ ...noPin, PROXMOX_SSL_MODE: 'insecure' }).version()).version).toBe(
      '9.1.4',
    )
  })

  it('never sends the token to a host it does not trust', async () => {
    await failureOf(cluster.connect({ ...noPin, PROXMOX_SSL_MODE: 'strict' }).version())
    expect(cluster.emulator.requests).toEqual([])
  })

  describe('with a CA', () => {
    const ca = createCertificate({ commonName: 'cluster CA', isCa: true })
    const withCertificate = async (names: string[]) => {
      await cluster.close()
      cluster = await startCluster({
        certificate: createCertificate({ commonName: 'pve1', names, signer: ca }),
      })
    }

    it('verifies the chain, whatever the name, in verify mode', async () => {
      await withCertificate(['pve1.example'])
      expect(
        (
          await cluster
            .connect({ ...noPin, PROXMOX_SSL_MODE: 'verify', PROXMOX_SSL_CA_CERT: ca.cert })
            .version()
        ).major,
      ).toBe(9)
    })

    it('wants the name too in strict mode, and says for whom the certificate is', async () => {
      await withCertificate(['pve1.example'])
      const error = await failureOf(
        cluster.connect({ ...noPin, PROXMOX_SSL_MODE: 'strict', PROXMOX_SSL_CA_CERT: ca.cert }).version(),
      )
      expect(error.message).toContain('DNS:pve1.example')
      await withCertificate(['127.0.0.1'])
      expect(
        (
          await cluster
            .connect({ ...noPin, PROXMOX_SSL_MODE: 'strict', PROXMOX_SSL_CA_CERT: ca.cert })
            .version()
        ).major,
      ).toBe(9)
    })

    it('refuses a chain to another CA', async () => {
      await withCertificate(['127.0.0.1'])
      const other = createCertificate({ commonName: 'cluster CA', isCa: true })
      expect(await kindOf(cluster.connect({ ...noPin, PROXMOX_SSL_CA_CERT: other.cert }).version())).toBe(
        'tls',
      )
    })

    it('reads the CA from a file and says when it cannot', async () => {
      await withCertificate(['127.0.0.1'])
      const dir = await mkdtemp(join(tmpdir(), 'ca-'))
      try {
        await writeFile(join(dir, 'ca.pem'), ca.cert)
        await writeFile(join(dir, 'bad.pem'), 'nothing')
        expect(
          (await cluster.connect({ ...noPin, PROXMOX_SSL_CA_CERT: join(dir, 'ca.pem') }).version()).major,
        ).toBe(9)
        expect(
          (await failureOf(cluster.connect({ ...noPin, PROXMOX_SSL_CA_CERT: join(dir, 'no.pem') }).version()))
            .message,
        ).toContain('Cannot read')
        expect(
          (
            await failureOf(
              cluster.connect({ ...noPin, PROXMOX_SSL_CA_CERT: join(dir, 'bad.pem') }).version(),
            )
          ).message,
        ).toContain('not a PEM')
      } finally {
        await rm(dir, { recursive: true })
      }
    })
  })
})

describe('authentication', () => {
  it('asks once with a bad token and then leaves the host alone', async () => {
    const pve = cluster.connect({ PROXMOX_TOKEN_VALUE: 'wrong' })
    for (let i = 0; i < 5; i++) expect((await failureOf(pve.get('/version'))).code).toBe('unauthorized')
    expect(requests('/version')).toBe(1)
  })

  it('logs in with a password, once, and sends the CSRF token with writes', async () => {
    const pve = cluster.root()
    await Promise.all([pve.get('/nodes'), pve.get('/version'), pve.post('/pools', { poolid: 'x' })])
    expect(requests('POST /api2/json/access/ticket')).toBe(1)
  })

  it('logs in again when the ticket has died, and repeats the call', async () => {
    const pve = cluster.root()
    await pve.get('/version')
    cluster.emulator.state.tickets.clear()
    await pve.post('/pools', { poolid: 'x' })
    expect(cluster.emulator.state.pools.has('x')).toBe(true)
    expect(requests('/access/ticket')).toBe(2)
  })

  it('does not try a wrong password twice', async () => {
    const pve = cluster.connect({
      PROXMOX_USER: 'root@pam',
      PROXMOX_TOKEN_NAME: '',
      PROXMOX_TOKEN_VALUE: '',
      PROXMOX_PASSWORD: 'no',
    })
    expect((await failureOf(pve.get('/version'))).code).toBe('unauthorized')
    expect(requests('/access/ticket')).toBe(1)
  })
})

describe('fail-over', () => {
  it('goes to the next host when one does not answer, even with a write', async () => {
    const dead = await deadEndpoint()
    const pve = cluster.connect({ PROXMOX_HOST: `${dead},127.0.0.1:${cluster.emulator.endpoints[0]!.port}` })
    const upid = await pve.post<string>('/nodes/pve1/qemu/9000/clone', { newid: 200, pool: 'jobs' })
    await pve.waitTask(upid)
    expect(cluster.emulator.state.vms.has(200)).toBe(true)
  })

  it('says which host it tried when all are away', async () => {
    const dead = await deadEndpoint()
    const error = await failureOf(cluster.connect({ PROXMOX_HOST: dead }).post('/pools', { poolid: 'x' }))
    expect(error).toMatchObject({ code: 'unavailable', retryable: true })
    expect(error.message).toContain('127.0.0.1')
  })

  it('moves on while a host is down and comes to no harm when it returns', async () => {
    const pve = cluster.connect()
    await pve.get('/version')
    await cluster.emulator.setNode('pve1', false)
    expect((await pve.version()).major).toBe(9)
    await cluster.emulator.setNode('pve1', true)
    expect((await pve.version()).major).toBe(9)
  })
})

describe('retries', () => {
  it.each([{ drop: 'before' as const }, { drop: 'after' as const }, { status: 596 }, { status: 595 }])(
    'repeats a read after %o',
    async fault => {
      cluster.emulator.faults.addRequest({ match: '/version', times: 2, ...fault })
      expect((await cluster.connect().version()).version).toBe('9.1.4')
    },
  )

  it('gives a read up after some tries', async () => {
    cluster.emulator.faults.addRequest({ match: '/version', status: 596 })
    expect(await failureOf(cluster.connect().version())).toMatchObject({ code: 'unavailable' })
    expect(requests('/version')).toBe(3)
  })

  it.each([{ drop: 'after' as const }, { drop: 'before' as const }, { loseAnswer: true }])(
    'sends a write once and is uncertain after %o',
    async fault => {
      cluster.emulator.faults.addRequest({ match: 'POST', times: 1, ...fault })
      const error = await failureOf(
        cluster.connect().post('/nodes/pve1/qemu/9000/clone', { newid: 200, pool: 'jobs' }),
      )
      expect(error).toBeInstanceOf(UncertainError)
      expect(error.retryable).toBe(false)
      expect(requests('/clone')).toBe(1)
    },
  )

  it('says that nothing happened when the node could not be reached', async () => {
    await cluster.emulator.setNode('pve2', false)
    const error = await failureOf(cluster.connect().put('/nodes/pve2/qemu/100/config', { cores: 1 }))
    expect(error).not.toBeInstanceOf(UncertainError)
    expect(['node_down', 'permission']).toContain(proxmoxDetails(error)?.kind)
  })

  it('ends a call at once when it is aborted', async () => {
    cluster.emulator.faults.addRequest({ match: '/version', delayMs: 60_000 })
    const started = Date.now()
    const error = await failureOf(cluster.connect().get('/version', {}, { signal: AbortSignal.timeout(50) }))
    expect(error.name).toBe('TimeoutError')
    expect(Date.now() - started).toBeLessThan(5000)
  })

  it('times out by itself, and is then uncertain about a write', async () => {
    cluster.emulator.faults.addRequest({ match: 'PUT', delayMs: 60_000 })
    const call = cluster.connect().put('/nodes/pve1/qemu/9000/config', { cores: 1 }, { timeoutMs: 100 })
    expect(await failureOf(call)).toBeInstanceOf(UncertainError)
  })
})

describe('tasks', () => {
  it('are awaited to their end, and tell the end of their log when they fail', async () => {
    const pve = cluster.connect()
    await pve.waitTask(await pve.post('/nodes/pve1/qemu/9000/clone', { newid: 200, pool: 'jobs' }))
    cluster.emulator.faults.addTask({ type: 'qmstart', error: 'start failed: QEMU exited with code 1' })
    const error = await failureOf(
      pve.post<string>('/nodes/pve1/qemu/200/status/start').then(upid => pve.waitTask(upid)),
    )
    expect(error.message).toContain('QEMU exited with code 1')
    expect(proxmoxDetails(error)?.log?.at(-1)).toContain('TASK ERROR')
  })

  it('are awaited through an outage', async () => {
    const pve = cluster.connect({ PROXMOX_HOST: `127.0.0.1:${cluster.emulator.endpoints[0]!.port}` })
    cluster.emulator.faults.addTask({ type: 'qmclone', step: 'copy', slower: 10 })
    const upid = await pve.post<string>('/nodes/pve1/qemu/9000/clone', { newid: 200, pool: 'jobs' })
    cluster.emulator.faults.addRequest({ match: '/tasks/', times: 4, status: 596 })
    expect(await pve.waitTask(upid, { deadline: Date.now() + 15_000 })).toMatchObject({
      exitStatus: 'OK',
      warnings: false,
    })
  })

  it('are given up at the deadline and can be stopped', async () => {
    const pve = cluster.connect()
    cluster.emulator.faults.addTask({ type: 'qmclone', step: 'copy', slower: 10_000 })
    const upid = await pve.post<string>('/nodes/pve1/qemu/9000/clone', { newid: 200, pool: 'jobs' })
    expect(await failureOf(pve.waitTask(upid, { deadline: Date.now() + 200 }))).toMatchObject({
      code: 'timeout',
    })
    await pve.cancelTask(upid)
    expect((await failureOf(pve.waitTask(upid))).message).toContain('interrupted by signal')
    expect(cluster.emulator.state.vms.has(200)).toBe(false)
  })

  it('of another token are not shown', async () => {
    const upid = await cluster.root().post<string>('/nodes/pve1/qemu', { vmid: 300 })
    const error = await failureOf(cluster.connect().waitTask(upid))
    expect(error.message).toContain('Permission check failed (/nodes/pve1, Sys.Audit)')
  })

  it('that never were are missing', async () => {
    const upid = 'UPID:pve1:0000A1B2:00C3D4E5:66F7A8B9:qmclone:9000:deputy@pve!jobs:'
    expect((await failureOf(cluster.connect().waitTask(upid))).code).toBe('not_found')
  })
})

describe('locks', () => {
  it('are waited for until the deadline', async () => {
    const pve = cluster.connect()
    await pve.waitTask(await pve.post('/nodes/pve1/qemu/9000/clone', { newid: 200, pool: 'jobs' }))
    const free = cluster.emulator.state.locks.jam('vm-200')
    const change = () => pve.put('/nodes/pve1/qemu/200/config', { cores: 2 })
    expect(await kindOf(change())).toBe('locked')
    setTimeout(free, 400)
    await pve.retryWhileLocked(change, { deadline: Date.now() + 15_000 })
    expect(cluster.emulator.state.vms.get(200)!.config.cores).toBe('2')
  })

  it('that a crash left cannot be removed by a token, and the error tells who can', async () => {
    const pve = cluster.connect()
    await pve.waitTask(await pve.post('/nodes/pve1/qemu/9000/clone', { newid: 200, pool: 'jobs' }))
    cluster.emulator.state.vms.get(200)!.config.lock = 'clone'
    const destroy = () => pve.delete<string>('/nodes/pve1/qemu/200').then(upid => pve.waitTask(upid))
    const error = await failureOf(pve.retryWhileLocked(destroy, { deadline: Date.now() + 800 }))
    expect(proxmoxDetails(error)?.kind).toBe('stale_lock')
    expect(error.hint).toContain('qm unlock')
    expect((await failureOf(pve.put('/nodes/pve1/qemu/200/config', { delete: 'lock' }))).code).toBe('denied')
  })
})

describe('uploads', () => {
  const iso = Buffer.from('an image')

  it('put a file in place', async () => {
    await cluster
      .connect()
      .upload({ node: 'pve1', storage: 'seeds', content: 'iso', filename: 'job-1.iso', file: iso })
    expect(cluster.emulator.state.volumes.get('pve1|seeds:iso/job-1.iso')?.data).toEqual(iso)
  })

  it('stream a file of any size from the disk', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'upload-'))
    try {
      const big = Buffer.alloc(3 * 1024 * 1024 + 17, 'x')
      await writeFile(join(dir, 'big'), big)
      await cluster.connect().upload({
        node: 'pve1',
        storage: 'seeds',
        content: 'iso',
        filename: 'big.img',
        file: { path: join(dir, 'big') },
      })
      expect(cluster.emulator.state.volumes.get('pve1|seeds:iso/big.img')?.data?.equals(big)).toBe(true)
    } finally {
      await rm(dir, { recursive: true })
    }
  })

  it('go to another host when the first is away', async () => {
    const dead = await deadEndpoint()
    const pve = cluster.connect({ PROXMOX_HOST: `${dead},127.0.0.1:${cluster.emulator.endpoints[0]!.port}` })
    await pve.upload({ node: 'pve1', storage: 'seeds', content: 'iso', filename: 'a.iso', file: iso })
    expect(cluster.emulator.state.volumes.has('pve1|seeds:iso/a.iso')).toBe(true)
  })

  it('tell what the storage does not take', async () => {
    const pve = cluster.connect()
    const send = (storage: string, filename: string) =>
      failureOf(pve.upload({ node: 'pve1', storage, content: 'iso', filename, file: iso }))
    expect((await send('local', 'a.iso')).message).toContain('(/storage/local, Datastore.AllocateTemplate)')
    expect((await send('seeds', 'a.txt')).message).toContain('wrong file extension')
  })
})

describe('many calls', () => {
  it('survive connections that close after 100 requests, and never exceed the limit for a node', async () => {
    const pve = cluster.connect()
    await Promise.all(Array.from({ length: 450 }, () => pve.get('/nodes/pve1/qemu')))
    expect(requests('/nodes/pve1/qemu')).toBe(450)
  })

  it('survive answers of another node, which carry two connection headers', async () => {
    const pve = cluster.connect()
    for (let i = 0; i < 20; i++) expect(await pve.get('/nodes/pve2/qemu')).toEqual([])
  })
})

describe('rights', () => {
  const PLACE = {
    major: 9,
    template: 9000,
    pool: 'jobs',
    diskStorages: ['shared'],
    seedStorage: 'seeds',
    bridge: 'vmbr0',
    user: 'deputy@pve',
    tokenId: 'deputy@pve!jobs',
  }

  it('are complete for the standard token', async () => {
    expect(await checkPermissions(cluster.connect().request, PLACE)).toEqual({ missing: [], commands: [] })
  })

  it('that are missing are named with the lines that grant them to user and token', async () => {
    cluster.emulator.state.roles.get('DeputyJobs')!.delete('VM.PowerMgmt')
    cluster.emulator.state.acl = cluster.emulator.state.acl.filter(
      rule => !(rule.path === '/storage/seeds' && rule.who.includes('!')),
    )
    const report = await checkPermissions(cluster.connect().request, PLACE)
    expect(report.missing.map(({ path, privileges }) => [path, privileges])).toEqual([
      ['/pool/jobs', ['VM.PowerMgmt']],
      ['/storage/seeds', ['Datastore.AllocateTemplate', 'Datastore.Audit', 'Datastore.Allocate']],
    ])
    expect(report.commands.join('\n')).toContain("pveum acl modify /storage/seeds --tokens 'deputy@pve!jobs'")
    expect(report.commands.join('\n')).toContain('pveum acl modify /storage/seeds --users deputy@pve')
  })
})

describe('the catalogue', () => {
  it('comes from the host, then from the cache of that version', async () => {
    const cacheDir = await mkdtemp(join(tmpdir(), 'catalogue-'))
    try {
      const first = await cluster.connect({}, { cacheDir }).catalogue()
      expect(first.source).toBe('host')
      expect(first.search('clone')[0]).toMatchObject({
        verb: 'POST',
        path: '/nodes/{node}/qemu/{vmid}/clone',
      })
      expect(first.check('POST', '/nodes/pve1/qemu/9000/clone', { newid: 50 })).toMatchObject([
        { param: 'newid', severity: 'error' },
      ])
      expect((await cluster.connect({}, { cacheDir }).catalogue()).source).toBe('cache')
      expect(requests('apidoc.js')).toBe(1)
    } finally {
      await rm(cacheDir, { recursive: true })
    }
  })

  it("is empty, and in nobody's way, when the host does not serve it", async () => {
    cluster.emulator.faults.addRequest({ match: 'apidoc.js', status: 500 })
    const catalogue = await cluster.connect().catalogue()
    expect(catalogue.source).toBe('none')
    expect(catalogue.check('POST', '/anything', {})).toEqual([])
  })
})

describe('what must not be asked twice', () => {
  it('is not, unless it cannot have arrived', async () => {
    const client = cluster.connect()
    cluster.emulator.faults.addRequest({ match: '/version', times: 1, drop: 'after' })
    const error = await failureOf(client.get('/version', {}, { once: true }))
    expect(error.retryable).toBe(true)
    expect(requests('/version')).toBe(1)
    cluster.emulator.faults.addRequest({ match: '/version', times: 1, loseAnswer: true })
    expect(await kindOf(client.get('/version', {}, { once: true }))).toBe('node_down')
    expect(requests('/version')).toBe(2)
    cluster.emulator.faults.addRequest({ match: '/version', times: 1, drop: 'after' })
    await client.get('/version')
    expect(requests('/version')).toBe(4)
  })

  it('is a write whose answer a gateway lost', async () => {
    cluster.emulator.faults.addRequest({ match: '/clone', times: 1, status: 504, reason: 'Gateway Time-out' })
    const clone = cluster.connect().post('/nodes/pve1/qemu/9000/clone', { newid: 100_001, pool: 'jobs' })
    expect(await failureOf(clone)).toBeInstanceOf(UncertainError)
  })

  it('is a password that was refused', async () => {
    const client = cluster.connect({
      PROXMOX_TOKEN_NAME: '',
      PROXMOX_TOKEN_VALUE: '',
      PROXMOX_PASSWORD: 'wrong',
    })
    for (let i = 0; i < 5; i++) {
      const error = await failureOf(client.version())
      expect(error).toMatchObject({ code: 'unauthorized', hint: expect.stringContaining('PROXMOX_PASSWORD') })
      expect(error.hint).not.toContain('PROXMOX_TOKEN_VALUE')
    }
    expect(requests('/access/ticket')).toBe(1)
  })
})
