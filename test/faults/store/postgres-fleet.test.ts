import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../../src/jobs/ids.ts'
import type { JobEvent } from '../../../src/jobs/job.ts'
import { parseManifest } from '../../../src/jobs/manifest.ts'
import type { Blobs, Store } from '../../../src/ports.ts'
import { createBlobs } from '../../../src/store/blob-store.ts'
import { isLeaseLost } from '../../../src/store/postgres-lease.ts'
import { openPostgresStore, type PostgresStore } from '../../../src/store/postgres-store.ts'
import { shareBlobs } from '../../../src/store/shared-blobs.ts'
import { until } from '../../support/engine.ts'
import { missingPostgres, type PostgresServer, startPostgres } from '../../support/postgres.ts'
import { removeDirectory } from '../../support/remove-directory.ts'
import { requireOrSkip } from '../../support/require.ts'
import { submit } from '../../support/store-contract.ts'
import { rejectedError } from '../../support/thrown-error.ts'

let server: PostgresServer
let schemas = 0
const opened: PostgresStore[] = []
const directories: string[] = []

const newSchema = (): string => `fleet_${schemas++}`
const register = async (
  schema: string,
  name: string,
  leaseSeconds = 60,
  keyId?: string,
): Promise<PostgresStore> => {
  const id = Buffer.from(name).toString('hex').padEnd(12, '0')
  const daemon = await openPostgresStore(server.url(schema), { id, name, version: '1', leaseSeconds, keyId })
  opened.push(daemon)
  return daemon
}
const openFleet = async (names: readonly string[], schema = newSchema()): Promise<PostgresStore[]> =>
  Promise.all(names.map(name => register(schema, name)))

const blobsOf = ({ store, parts }: PostgresStore): Blobs => {
  const directory = mkdtempSync(join(tmpdir(), 'deputy-blobs-'))
  directories.push(directory)
  return shareBlobs(createBlobs(directory, store), parts)
}

const claim = (store: Store) => store.claim({ runtime: 'sandbox', machineId: newId(), now: 10 })

async function* once(data: Uint8Array): AsyncGenerator<Uint8Array> {
  yield data
}

const read = async (source: AsyncIterable<Uint8Array>): Promise<Buffer> => {
  const chunks: Uint8Array[] = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks)
}

describe.skipIf(requireOrSkip(missingPostgres()))('daemons that share a PostgreSQL', () => {
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterEach(async () => {
    for (const { store } of opened.splice(0)) await store.close()
    directories.splice(0).forEach(removeDirectory)
  })
  afterAll(() => server?.remove())

  it('claim each job once, and own what they claim', async () => {
    const fleet = await openFleet(['a', 'b', 'c'])
    const ids = await Promise.all(Array.from({ length: 90 }, (_, index) => submit(fleet[index % 3]!.store)))
    const claimAll = async ({ store }: PostgresStore): Promise<string[]> => {
      const claimed: string[] = []
      for (let next = await claim(store); next !== undefined; next = await claim(store))
        claimed.push(next.job.id)
      return claimed
    }
    const claimed = await Promise.all(fleet.map(claimAll))
    expect(claimed.flat().sort()).toEqual(ids.sort())
    for (const [index, { store }] of fleet.entries()) {
      expect((await store.activeJobs()).map(job => job.id).sort()).toEqual(claimed[index]!.sort())
      expect((await store.ownMachines()).map(machine => machine.jobId).sort()).toEqual(claimed[index]!.sort())
    }
    expect(await fleet[0]!.store.listMachines()).toHaveLength(90)
  })

  it('leave a pinned job, and one for a kept machine, to the daemon that has it', async () => {
    const [a, b] = (await openFleet(['a', 'b'])) as [PostgresStore, PostgresStore]
    await submit(a.store)
    const { machine } = (await claim(a.store))!
    await a.store.updateMachine(machine.id, { state: 'kept' })
    const follower = await submit(b.store, { machine: machine.id })
    const pinned = newId()
    await b.store.insertJob({
      ...{ id: pinned, manifest: parseManifest({ task: 'x' }), manifestHash: 'h', title: 'x' },
      ...{
        runtime: 'sandbox',
        origin: 'test',
        createdAt: 1,
        timeoutSeconds: 60,
        wantsDaemon: b.store.daemon,
      },
    })
    expect((await claim(b.store))?.job.id).toBe(pinned)
    expect(await claim(b.store)).toBeUndefined()
    expect((await claim(a.store))?.job.id).toBe(follower)
  })

  it('accept one job for an idempotency key that is submitted to each at the same time', async () => {
    const fleet = await openFleet(['a', 'b', 'c'])
    const insert = ({ store }: PostgresStore) =>
      store.insertJob({
        ...{ id: newId(), manifest: parseManifest({ task: 'x', idempotency_key: 'k' }), manifestHash: 'h' },
        ...{ title: 'x', runtime: 'sandbox', origin: 'test', createdAt: 1, timeoutSeconds: 60 },
      })
    const answers = await Promise.all(fleet.map(insert))
    expect(answers.filter(({ created }) => created)).toHaveLength(1)
    expect(new Set(answers.map(({ job }) => job.id)).size).toBe(1)
  })

  it('let one of a claim and a cancellation win', async () => {
    const [a, b] = (await openFleet(['a', 'b'])) as [PostgresStore, PostgresStore]
    for (let round = 0; round < 20; round++) {
      const id = await submit(a.store)
      const [claimed, cancelled] = await Promise.all([
        claim(a.store),
        b.store.move(id, 'cancelled', { completedAt: 2 }, { at: 2, data: {} }, { from: ['pending'] }),
      ])
      expect(cancelled).toBe(claimed === undefined)
    }
  })

  it('merge reviews of one job', async () => {
    const [a, b] = (await openFleet(['a', 'b'])) as [PostgresStore, PostgresStore]
    const id = await submit(a.store)
    const view = (store: Store, file: string) =>
      store.changeReview(id, review => ({ ...review, viewed: [...review.viewed, file] }))
    await Promise.all(
      Array.from({ length: 10 }, (_, n) => [view(a.store, `a${n}`), view(b.store, `b${n}`)]).flat(),
    )
    expect((await a.store.getReview(id))?.viewed).toHaveLength(20)
  })

  it('show every event to a follower that never looks back', async () => {
    const fleet = await openFleet(['a', 'b', 'c'])
    const { store } = fleet[0]!
    const seen: JobEvent[] = []
    let isOver = false
    const follow = async (): Promise<void> => {
      for (let last = false; ; ) {
        const events = await store.events({ after: seen.at(-1)?.seq ?? 0, limit: 50 })
        seen.push(...events)
        if (last && events.length === 0) return
        last = isOver
      }
    }
    const following = follow()
    await Promise.all(
      fleet.map(async daemon => {
        for (let n = 0; n < 60; n++) await submit(daemon.store)
      }),
    )
    isOver = true
    await following
    expect(seen).toHaveLength(180)
  })

  it('hear of the changes of each other, and not of their own', async () => {
    const [a, b] = (await openFleet(['a', 'b'])) as [PostgresStore, PostgresStore]
    const heard: Record<string, string[]> = { a: [], b: [] }
    a.fleet.onChange(({ jobId }) => heard.a!.push(jobId))
    b.fleet.onChange(({ jobId }) => heard.b!.push(jobId))
    // Until it listens; a notification before that is lost.
    await until(() => {
      a.fleet.publish({ jobId: 'one', kind: 'state' })
      return heard.b!.includes('one')
    }, 'b hears of it')
    await until(() => {
      b.fleet.publish({ jobId: 'two', kind: 'output' })
      return heard.a!.includes('two')
    }, 'a hears of it')
    expect(heard.a).not.toContain('one')
  })

  it('ignore notifications of others on their channel', async () => {
    const schema = newSchema()
    const [a, b] = (await openFleet(['a', 'b'], schema)) as [PostgresStore, PostgresStore]
    const heard = new Set<string>()
    b.fleet.onChange(({ jobId }) => heard.add(jobId))
    const publish = (jobId: string) =>
      until(() => {
        a.fleet.publish({ jobId, kind: 'state' })
        return heard.has(jobId)
      }, `b hears of ${jobId}`)
    await publish('one')
    const stranger = new pg.Client({ connectionString: server.url(schema) })
    await stranger.connect()
    try {
      for (const payload of [
        '',
        'hello',
        'null',
        '{"sender":"x"}',
        '{"sender":"x","changes":[["three","no kind"]]}',
      ])
        await stranger.query('select pg_notify($1, $2)', [schema, payload])
    } finally {
      await stranger.end()
    }
    await publish('two')
    expect([...heard]).toEqual(['one', 'two'])
  })

  it('are listed, each with its own name', async () => {
    const schema = newSchema()
    const [a, b] = (await openFleet(['a', 'b'], schema)) as [PostgresStore, PostgresStore]
    await a.fleet.announce([{ name: 'sandbox', slots: 4 }])
    await submit(a.store)
    await claim(a.store)
    const error = await rejectedError(
      openPostgresStore(server.url(schema), {
        id: 'ffffffffffff',
        name: 'a',
        version: '1',
        leaseSeconds: 60,
      }),
    )
    expect(error).toMatchObject({ code: 'conflict', message: expect.stringContaining("named 'a'") })
    expect(await a.fleet.daemons()).toMatchObject([
      { name: 'a', state: 'up', jobs: 1, runtimes: [{ name: 'sandbox', slots: 4 }], keyId: null },
      { name: 'b', state: 'up', jobs: 0, runtimes: [], keyId: null },
    ])
    await b.store.close()
    expect((await a.fleet.daemons())[1]).toMatchObject({ name: 'b', state: 'stopped' })
  })

  it('fence a daemon that does not renew its lease, and refuse its writes until it registers again', async () => {
    const schema = newSchema()
    const a = await register(schema, 'a', 300)
    const id = await submit(a.store)
    await claim(a.store)
    const b = await register(schema, 'b', 2)
    const stateOfA = async () => (await b.fleet.daemons())[0]!.state
    // It renews every 100 s: expired in between, it looks like a daemon that has stopped to do so.
    await until(async () => {
      await server.query(`update ${schema}.daemons set lease_until = now() - interval '1 s' where name = 'a'`)
      return (await stateOfA()) === 'gone'
    }, 'b fences a')
    const change = { startedAt: 5 }
    const refused = await rejectedError(a.store.move(id, 'running', change, { at: 5, data: {} }))
    expect(isLeaseLost(refused)).toBe(true)
    await expect(a.lost).rejects.toSatisfy(isLeaseLost)
    expect((await b.store.getJob(id))?.state).toBe('provisioning')
    expect(await b.store.activeJobs()).toEqual([])

    const again = await register(schema, 'a')
    expect((await again.store.activeJobs()).map(job => job.id)).toEqual([id])
    expect(await again.store.move(id, 'running', change, { at: 5, data: {} })).toBe(true)
    expect(isLeaseLost(await rejectedError(submit(a.store)))).toBe(true)
    expect(await stateOfA()).toBe('up')
  })

  it('fail the jobs of a daemon that stays away, and leave those of the others', async () => {
    const schema = newSchema()
    const [a, b] = (await openFleet(['a', 'b'], schema)) as [PostgresStore, PostgresStore]
    const away = await submit(a.store)
    await claim(a.store)
    const present = await submit(b.store)
    await claim(b.store)
    await a.store.close()
    expect(await b.fleet.failAbandoned(3600, 20)).toEqual([])
    await server.query(`update ${schema}.daemons set lease_until = now() - interval '2 hours'`)
    expect(await b.fleet.failAbandoned(3600, 20)).toEqual([away])
    expect(await b.store.getJob(away)).toMatchObject({
      state: 'failed',
      error: { code: 'lost', message: expect.stringContaining("The daemon 'a'") },
    })
    expect((await b.store.getJob(present))?.state).toBe('provisioning')
    const again = await register(schema, 'a')
    expect(await again.store.activeJobs()).toEqual([])
    // Its machine is cleaned up by its daemon, which alone can reach it.
    expect(await again.store.ownMachines()).toHaveLength(1)
  })

  it('adopt the machines of a daemon that is away, once, if they have its key', async () => {
    const schema = newSchema()
    const [a, b, c] = await Promise.all(['a', 'b', 'c'].map(name => register(schema, name, 60, 'key')))
    const stranger = await register(schema, 'stranger', 60, 'another key')
    const keyless = await register(schema, 'keyless')
    expect(new Set([a, b, c, stranger].map(daemon => daemon!.owner)).size).toBe(1)
    const id = await submit(a!.store)
    const { machine } = (await claim(a!.store))!
    const abandoned = async (daemon = b, runtime = 'sandbox') =>
      (await daemon!.fleet.abandonedMachines([runtime])).map(one => one.id)
    const end = (at: string) =>
      server.query(`update ${schema}.daemons set lease_until = ${at} where name in ('a', 'keyless')`)

    expect(await abandoned()).toEqual([])
    expect(await b!.fleet.adopt(machine.id)).toBeUndefined()
    await a!.store.close()
    // Until its lease is over it may come back.
    expect(await abandoned()).toEqual([])
    expect(await b!.fleet.adopt(machine.id)).toBeUndefined()
    await end(`now() - interval '1 s'`)
    expect(await abandoned()).toEqual([machine.id])
    expect(await abandoned(b, 'ssh')).toEqual([])
    expect(await abandoned(stranger)).toEqual([])
    expect(await abandoned(keyless)).toEqual([])
    await c!.fleet.drain('c', true)
    expect(await abandoned(c)).toEqual([])

    const adopted = await Promise.all([b!.fleet.adopt(machine.id), c!.fleet.adopt(machine.id)])
    expect(adopted.filter(Boolean)).toMatchObject([{ machine: { id: machine.id }, job: { id }, from: 'a' }])
    const heir = adopted[0] === undefined ? c! : b!
    expect((await heir.store.activeJobs()).map(job => job.id)).toEqual([id])
    expect((await heir.store.ownMachines()).map(one => one.id)).toEqual([machine.id])
    const again = await register(schema, 'a', 60, 'key')
    expect(await again.store.activeJobs()).toEqual([])
    expect(await again.store.ownMachines()).toEqual([])
  })

  it('let one of an adoption and the return of the daemon win', async () => {
    const schema = newSchema()
    const b = await register(schema, 'b', 60, 'key')
    for (let round = 0; round < 10; round++) {
      const a = await register(schema, 'a', 60, 'key')
      await submit(a.store)
      const { machine } = (await claim(a.store))!
      await a.store.close()
      await server.query(`update ${schema}.daemons set lease_until = now() - interval '1 s' where name = 'a'`)
      const [adopted, again] = await Promise.all([
        b.fleet.adopt(machine.id),
        register(schema, 'a', 60, 'key'),
      ])
      const isOwn = (await again.store.ownMachines()).some(({ id }) => id === machine.id)
      expect(isOwn).toBe(adopted === undefined)
      await again.store.close()
    }
  })

  it('claim nothing while they are drained, also after a restart', async () => {
    const schema = newSchema()
    const [a, b] = (await openFleet(['a', 'b'], schema)) as [PostgresStore, PostgresStore]
    const first = await submit(a.store)
    expect(await b.fleet.drain('a', true)).toBe(true)
    expect(await b.fleet.drain('c', true)).toBe(false)
    expect(await claim(a.store)).toBeUndefined()
    await a.store.close()
    const again = await register(schema, 'a')
    expect(await again.fleet.daemons()).toMatchObject([{ isDraining: true }, { isDraining: false }])
    expect(await claim(again.store)).toBeUndefined()
    expect((await claim(b.store))?.job.id).toBe(first)
    await b.fleet.drain('a', false)
    const second = await submit(b.store)
    expect((await claim(again.store))?.job.id).toBe(second)
  })

  it('share blobs: stored through one, read, fetched and removed through another', async () => {
    const [a, b] = (await openFleet(['a', 'b'])) as [PostgresStore, PostgresStore]
    const [blobsA, blobsB] = [blobsOf(a), blobsOf(b)]
    const data = randomBytes(1_300_000)
    const { sha256, size } = await blobsA.put(once(data), 2_000_000, 'upload')
    expect(size).toBe(data.length)
    expect(data.equals(await read(blobsB.read(sha256)))).toBe(true)
    const range = { start: 500_000, end: 1_100_000 }
    expect(data.subarray(range.start, range.end + 1).equals(await read(blobsB.read(sha256, range)))).toBe(
      true,
    )
    await blobsB.fetch(sha256)
    expect(data.equals(readFileSync(blobsB.path(sha256)))).toBe(true)
    const empty = await blobsA.put(once(new Uint8Array()), 10, 'upload')
    expect(await read(blobsB.read(empty.sha256))).toEqual(Buffer.alloc(0))

    expect(await blobsB.hold(sha256, newId())).toBe(true)
    await blobsA.removeUnused(sha256)
    expect(data.equals(await read(blobsOf(b).read(sha256)))).toBe(true)
    await a.store.releaseStaleBlobs(Date.now() + 1000)
    for await (const unused of blobsA.list()) await blobsA.removeUnused(unused)
    expect(await server.query(`select * from fleet_${schemas - 1}.blob_parts`)).toEqual([])
    expect(await blobsA.hold(sha256, newId())).toBe(false)
    await expect(read(blobsOf(b).read(sha256))).rejects.toThrow('no complete blob')
  })

  it('never lose a blob that one holds while another removes it', async () => {
    const [a, b] = (await openFleet(['a', 'b'])) as [PostgresStore, PostgresStore]
    const [blobsA, blobsB] = [blobsOf(a), blobsOf(b)]
    for (let round = 0; round < 20; round++) {
      const data = randomBytes(1000)
      const { sha256 } = await blobsA.put(once(data), 2000, 'upload')
      await a.store.releaseStaleBlobs(Date.now() + 1000)
      await Promise.all([blobsB.put(once(data), 2000, newId()), blobsA.removeUnused(sha256)])
      expect(await read(blobsOf(a).read(sha256))).toEqual(data)
    }
  })

  it('let a hold wait for a removal of the same blob that another has begun', async () => {
    const schema = newSchema()
    const [a] = (await openFleet(['a'], schema)) as [PostgresStore]
    const blobs = blobsOf(a)
    const data = randomBytes(1000)
    const { sha256 } = await blobs.put(once(data), 2000, 'upload')
    const remover = new pg.Client({ connectionString: server.url(schema) })
    await remover.connect()
    try {
      await remover.query(`set search_path = ${schema}`)
      await remover.query('begin')
      await remover.query('select lock_blob($1)', [sha256])
      const holding = blobs.put(once(data), 2000, newId())
      const waiting = `select 1 from pg_locks where locktype = 'advisory' and not granted`
      await until(async () => (await server.query(waiting)).length > 0, 'the hold waits')
      await remover.query('delete from blob_files')
      await remover.query('delete from blob_parts')
      await remover.query('commit')
      await holding
    } finally {
      await remover.end()
    }
    expect(await read(blobsOf(a).read(sha256))).toEqual(data)
  })
})
