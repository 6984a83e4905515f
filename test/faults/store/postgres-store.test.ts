import { mkdtempSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Store } from '../../../src/ports.ts'
import { openPostgresStore } from '../../../src/store/postgres-store.ts'
import { missingPostgres, type PostgresServer, SOCKET, startPostgres } from '../../support/postgres.ts'
import { removeDirectory } from '../../support/remove-directory.ts'
import { requireOrSkip } from '../../support/require.ts'
import { storeContract, submit } from '../../support/store-contract.ts'
import { agreesWithModel } from '../../support/store-model.ts'
import { rejectedError } from '../../support/thrown-error.ts'

const INSTALLATION = '0123456789ab'

let server: PostgresServer
let schemas = 0
const stores: Store[] = []

const newSchema = (): string => server.url(`test_${schemas++}`)
const openOnly = (url: string, id = INSTALLATION, leaseSeconds = 60) =>
  openPostgresStore(url, { id, name: id, version: '0.0.0', leaseSeconds })
const openAt = async (url: string, id?: string, leaseSeconds?: number) => {
  const opened = await openOnly(url, id, leaseSeconds)
  stores.push(opened.store)
  return opened
}
const open = async (): Promise<Store> => (await openAt(newSchema())).store

/** Cuts the first connection that commits after `arm`, before the commit reaches the server or before its answer. */
const relayThatCutsCommit = async (directory: string, fate: 'lost' | 'delivered') => {
  let isArmed = false
  let hasCut = false
  const relay: Server = createServer(client => {
    const upstream = connect(server.socket)
    let isCutting = false
    client.on('data', data => {
      if (isArmed && data.includes('commit\0')) {
        isArmed = false
        hasCut = true
        isCutting = true
        if (fate === 'lost') return void client.destroy()
      }
      upstream.write(data)
    })
    upstream.on('data', data => (isCutting ? client.destroy() : client.write(data)))
    client.on('error', () => {})
    upstream.on('error', () => {})
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
  })
  await new Promise<void>(resolve => relay.listen(join(directory, SOCKET), resolve))
  return {
    arm: () => {
      isArmed = true
    },
    hasCut: () => hasCut,
    close: () => new Promise(resolve => relay.close(resolve)),
  }
}

describe.skipIf(requireOrSkip(missingPostgres()))('the store in PostgreSQL', () => {
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close()
  })
  afterAll(() => server?.remove())

  storeContract(open)

  it('agrees with the model for random operations in random order', async () => {
    const urls = new Map<number, string>()
    const openRun = async (run: number): Promise<Store> => {
      const url = urls.get(run) ?? newSchema()
      urls.set(run, url)
      return (await openOnly(url)).store
    }
    await expect(agreesWithModel(openRun, 10)).resolves.toBeUndefined()
  })

  it('of a newer Deputy is rejected and not changed', async () => {
    const url = newSchema()
    await (await openOnly(url)).store.close()
    const schema = new URL(url).searchParams.get('schema')
    await server.query(`update ${schema}.schema_version set version = 99`)
    const error = await rejectedError(openOnly(url))
    expect(error).toMatchObject({ code: 'conflict', message: expect.stringContaining('schema 99') })
    expect(await server.query(`select version from ${schema}.schema_version`)).toEqual([{ version: 99 }])
  })

  it('is migrated once by daemons that start at the same time', async () => {
    const url = newSchema()
    const opened = await Promise.all([openAt(url), openAt(url), openAt(url)])
    expect(opened).toHaveLength(3)
  })

  it('refuses the writes of an earlier process of the same installation', async () => {
    const url = newSchema()
    const first = await openAt(url)
    await submit(first.store)
    const second = await openAt(url)
    expect(await rejectedError(submit(first.store))).toMatchObject({ code: 'conflict' })
    await expect(first.lost).rejects.toMatchObject({ code: 'conflict' })
    await submit(second.store)
    expect(await second.store.listJobs({ limit: 10 })).toHaveLength(2)
  })

  it.each(['lost', 'delivered'] as const)(
    'stores a job once when the connection ends at its commit and the commit is %s',
    async fate => {
      const directory = mkdtempSync(join(tmpdir(), 'pg-'))
      const relay = await relayThatCutsCommit(directory, fate)
      const { store } = await openAt(server.url(`cut_${fate}`, directory))
      relay.arm()
      const id = await submit(store)
      expect(relay.hasCut()).toBe(true)
      expect((await store.listJobs({ limit: 10 })).map(job => job.id)).toEqual([id])
      expect((await store.counts()).pending).toBe(1)
      await store.close()
      await relay.close()
      removeDirectory(directory)
    },
  )

  it('stores text with a NUL character', async () => {
    const store = await open()
    const id = await submit(store)
    await store.update(id, { progress: 'a\0b' })
    expect((await store.getJob(id))?.progress).toBe('a\uFFFDb')
  })

  it('keeps every acknowledged job exactly once while the server crashes and restarts', async () => {
    const store = await open()
    const acknowledged: string[] = []
    let isOver = false
    const submitAll = async (): Promise<void> => {
      while (!isOver) acknowledged.push(await submit(store))
    }
    const clients = Array.from({ length: 4 }, submitAll)
    try {
      for (const signal of ['SIGQUIT', 'SIGINT', 'SIGQUIT'] as const) {
        const before = acknowledged.length
        await expect.poll(() => acknowledged.length, { timeout: 60_000 }).toBeGreaterThan(before + 20)
        await server.stop(signal)
        await server.start()
      }
    } finally {
      isOver = true
    }
    await Promise.all(clients)
    const stored = await store.listJobs({ limit: 1_000_000 })
    expect(stored.map(job => job.id).sort()).toEqual(acknowledged.sort())
    expect((await store.counts()).pending).toBe(acknowledged.length)
  })
})
