import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Store } from '../../../src/ports.ts'
import { acquireLock } from '../../../src/store/daemon-lock.ts'
import { openDatabase } from '../../../src/store/database.ts'
import { createWriter } from '../../../src/store/group-commit.ts'
import { openStore } from '../../../src/store/sqlite-store.ts'
import { storeContract, submit } from '../../support/store-contract.ts'

let directory: string
let path: string
const stores: Store[] = []

const open = (): Store => {
  const store = openStore(path)
  stores.push(store)
  return store
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'deputy-store-'))
  path = join(directory, 'deputy.db')
})
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close().catch(() => undefined)
  rmSync(directory, { recursive: true, force: true })
})

storeContract(async () => open())

describe('the database', () => {
  it('that is damaged is rejected with instructions, and not changed', () => {
    writeFileSync(path, 'this is no database at all, and long enough to be read as one'.repeat(40))
    const before = readFileSync(path)
    expect(() => openStore(path)).toThrow(/damaged or not a Deputy database/)
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  it('of a newer Deputy is rejected and not changed', async () => {
    const store = openStore(path)
    await submit(store)
    await store.close()
    const database = openDatabase(path)
    database.exec('pragma user_version = 99')
    database.close()
    expect(() => openStore(path)).toThrow(/schema 99/)
    const again = openDatabase(path)
    expect(again.get('pragma user_version')).toMatchObject({ user_version: 99 })
    expect(again.get('select count(*) as jobs from jobs')).toMatchObject({ jobs: 1 })
    again.close()
  })

  it('flushes writes that must survive a power cut, and not lazy ones', async () => {
    const database = openDatabase(path)
    database.get('pragma journal_mode = wal')
    // Whatever the driver was built with.
    database.get('pragma synchronous = normal')
    database.run('create table one (n)')
    const modes: unknown[] = []
    const writer = createWriter({
      ...database,
      run: (sql, ...values) => {
        if (sql === 'commit') modes.push(database.get('pragma synchronous')?.synchronous)
        return database.run(sql, ...values)
      },
    })
    const add = (lazy: boolean) => writer.write(db => db.run('insert into one values (1)'), { lazy })
    await add(true)
    await add(false)
    await Promise.all([add(true), add(false)])
    await writer
      .write(
        () => {
          throw new Error('no')
        },
        { lazy: true },
      )
      .catch(() => undefined)
    expect(modes).toEqual([1, 2, 2, 1])
    expect(database.all('select n from one')).toHaveLength(4)
    database.close()
  })

  it('shares a flush with slightly later writes, when the disk is slow and many write', async () => {
    const database = openDatabase(path)
    database.run('create table one (n)')
    let commits = 0
    const writer = createWriter({
      ...database,
      run: (sql, ...values) => {
        if (sql === 'commit') {
          commits += 1
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 40)
        }
        return database.run(sql, ...values)
      },
    })
    const add = () => writer.write(db => db.run('insert into one values (1)'))
    const later = <T>(ms: number, work: () => Promise<T>) =>
      new Promise(resolve => setTimeout(() => resolve(work()), ms))
    await Promise.all([add(), add(), add()])
    expect(commits).toBe(1)
    await Promise.all([later(1, add), later(1, add), add()])
    expect(commits).toBe(2)
    // Those who were expected do not come: it is not waited for them for ever, nor again.
    await add()
    await add()
    expect(commits).toBe(4)
    expect(database.all('select n from one')).toHaveLength(8)
    database.close()
  })

  it('is locked by one process at a time, and free after the release', () => {
    const lock = acquireLock(join(directory, 'lock'))
    expect(lock).toBeDefined()
    expect(acquireLock(join(directory, 'lock'))).toBeUndefined()
    lock!.release()
    const again = acquireLock(join(directory, 'lock'))
    expect(again).toBeDefined()
    again!.release()
  })
})

describe('a database of an earlier version', () => {
  it('is upgraded with all its jobs and their output', async () => {
    const store = open()
    const id = await submit(store)
    await store.close()
    const database = openDatabase(path)
    database.exec(
      'drop index jobs_queue_until; alter table jobs drop column queue_until; alter table jobs drop column node',
    )
    database.exec(
      'alter table jobs drop column daemon; alter table jobs drop column wants_daemon; alter table machines drop column daemon',
    )
    database.exec(
      'alter table jobs drop column output_base; drop table blob_holds; drop table known_time; drop table reviews; drop table samples; drop table needs',
    )
    database.exec(`
      drop table output;
      create table output (
        job_id text not null, offset integer not null, stream integer not null, at integer not null,
        data blob not null, primary key (job_id, offset)
      ) without rowid;
      insert into output values ('${id}', 3, 2, 8, x'6c6f'), ('${id}', 0, 1, 7, x'68656c');
    `)
    database.exec(`update jobs set result = '{"executedOn":{"node":"n1","because":"it is idle"}}'`)
    database.exec('pragma user_version = 1')
    database.close()
    const now = open()
    expect(await now.listJobs({ node: 'n1', limit: 10 })).toHaveLength(1)
    expect(await now.getJob(id)).toMatchObject({ id, outputBase: 0 })
    const pieces = await now.readOutput(id, 0, 100)
    expect(pieces.map(({ data, ...rest }) => ({ ...rest, text: Buffer.from(data).toString() }))).toEqual([
      { stream: 'stdout', offset: 0, at: 7, text: 'hel' },
      { stream: 'stderr', offset: 3, at: 8, text: 'lo' },
    ])
  })
})

describe('a new home', () => {
  it('is made with directories nobody else can read', () => {
    path = join(directory, 'state', 'deep', 'deputy.db')
    open()
    expect(existsSync(path)).toBe(true)
  })
})
