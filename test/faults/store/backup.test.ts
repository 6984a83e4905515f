import { execFile } from 'node:child_process'
import { existsSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { pack } from 'tar-stream'
import { afterAll, describe, expect, it } from 'vitest'
import { newId } from '../../../src/jobs/ids.ts'
import { parseManifest } from '../../../src/jobs/manifest.ts'
import { openDatabase } from '../../../src/store/database.ts'
import { openStore } from '../../../src/store/sqlite-store.ts'
import { MAIN, noProvider, until } from '../../support/cli.ts'
import { newHome, removeDirectory, startDaemon, useDaemons } from '../../support/daemon.ts'
import { requireOrSkip } from '../../support/require.ts'

const missing = requireOrSkip(await noProvider())
const start = useDaemons()
const outside = newHome()
afterAll(() => removeDirectory(outside))

const deputy = (directory: string, ...args: readonly string[]) =>
  promisify(execFile)(process.execPath, [MAIN, ...args], {
    env: { PATH: process.env.PATH, HOME: directory, DEPUTY_HOME: directory, DEPUTY_HTTP: 'false' },
  }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    error => ({ code: Number(error.code), stdout: String(error.stdout), stderr: String(error.stderr) }),
  )

/** A database with so many bytes in it that nobody reads at the start, and a page among them that is broken. */
const damagedHome = async (bytes: number): Promise<{ directory: string; path: string }> => {
  const directory = newHome()
  const path = join(directory, 'state', 'deputy.db')
  await openStore(path).close()
  const database = openDatabase(path)
  database.exec('create table filler (data blob)')
  database.exec(`insert into filler values (zeroblob(${bytes}))`)
  database.get('pragma wal_checkpoint(truncate)')
  database.close()
  // The pointer of an overflow page to the next one.
  writeSync(openSync(path, 'r+'), Buffer.alloc(4, 0xff), 0, 4, 4096 * 120)
  return { directory, path }
}

describe('a damaged database', () => {
  it('is refused at the start with the way to restore, and not touched', async () => {
    const { directory, path } = await damagedHome(1024 * 1024)
    const before = readFileSync(path)
    const daemon = await start({ directory, ready: false })
    expect(await daemon.ended()).not.toBe(0)
    expect(daemon.log()).toContain(`${path} is damaged`)
    expect(daemon.log()).toContain('deputy restore FILE')
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  it('that is large is found in the background: the daemon ends, and the next one refuses at once', async () => {
    const { directory, path } = await damagedHome(80 * 1024 * 1024)
    const daemon = await start({ directory, ready: false })
    expect(await daemon.ended()).not.toBe(0)
    expect(daemon.log()).toContain('"ready"')
    expect(daemon.log()).toContain(`${path} is damaged`)
    const next = await start({ directory, ready: false })
    expect(await next.ended()).not.toBe(0)
    expect(next.log()).toContain(`${path} is damaged`)
    expect(next.log()).not.toContain('"ready"')
  })
})

describe('a daemon that stops', () => {
  it('leaves its database in one file', async () => {
    const daemon = await start()
    await daemon.client.list()
    const wal = join(daemon.home.stateDir, 'deputy.db-wal')
    expect(statSync(wal).size).toBeGreaterThan(0)
    await daemon.kill('SIGTERM')
    expect(existsSync(wal) ? statSync(wal).size : 0).toBe(0)
  })
})

describe.skipIf(missing)('a backup', () => {
  it('brings back jobs, output and artifacts after everything was lost', async () => {
    const daemon = await start()
    const { directory, home } = daemon
    const file = join(outside, 'backup.tar')
    const task = 'echo printed; echo made > out.txt'
    const { stdout } = await deputy(directory, 'submit', '--json', '--artifact', 'out.txt', '--', task)
    const id: string = JSON.parse(stdout).job_id
    await until(async () => (await daemon.client.get(id)).status === 'success', 'the job has ended')

    expect(await deputy(directory, 'backup', file)).toMatchObject({ code: 0 })
    expect(statSync(file).mode & 0o077).toBe(0)
    expect((await deputy(directory, 'backup', file)).stderr).toContain('already exists')
    expect((await deputy(directory, 'restore', file)).stderr).toContain('deputy daemon stop')

    await daemon.kill()
    for (const name of ['deputy.db', 'deputy.db-wal', 'deputy.db-shm', 'blobs'])
      rmSync(join(home.stateDir, name), { recursive: true, force: true })
    expect(await deputy(directory, 'restore', file)).toMatchObject({ code: 0 })
    const restored = await startDaemon({ directory })
    try {
      expect((await restored.client.result(id)).output).toBe('printed\n')
      const { bytes } = await restored.client.openArtifact(id, 'out.txt')
      const parts: Uint8Array[] = []
      for await (const part of bytes) parts.push(part)
      expect(Buffer.concat(parts).toString()).toBe('made\n')
    } finally {
      await restored.kill()
    }
  })
})

const pendingJob = () => ({
  id: newId(),
  manifest: parseManifest({ task: 'true' }),
  manifestHash: '',
  title: 'true',
  runtime: 'sandbox',
  origin: 'test',
  createdAt: Date.now(),
  timeoutSeconds: 60,
})

const tarOf = (files: Readonly<Record<string, Buffer>>): Promise<Buffer> => {
  const tar = pack()
  for (const [name, content] of Object.entries(files)) tar.entry({ name }, content)
  tar.finalize()
  return buffer(tar)
}

describe('a restore', () => {
  it('does not run jobs again that were waiting, and keeps the database it replaces', async () => {
    const directory = newHome()
    const state = join(directory, 'state')
    const file = join(outside, 'pending.tar')
    const path = join(state, 'deputy.db')
    const before = openStore(path)
    const { job } = await before.insertJob(pendingJob())
    await before.close()
    expect(await deputy(directory, 'backup', file)).toMatchObject({ code: 0 })
    // As a daemon that was killed, it leaves a write-ahead log, which must not be applied to the restored database.
    const killed = openStore(path)
    const { job: later } = await killed.insertJob(pendingJob())
    const { stdout } = await deputy(directory, 'restore', '--json', file)
    expect(JSON.parse(stdout)).toMatchObject({ notRun: 1, replaced: join(state, 'deputy.db.replaced') })
    const after = openStore(path)
    expect(await after.getJob(job.id)).toMatchObject({ state: 'failed', error: { code: 'lost' } })
    expect(await after.getJob(later.id)).toBeUndefined()
    await after.close()
    for (const suffix of ['', '-wal']) expect(existsSync(`${path}.replaced${suffix}`), suffix).toBe(true)
    await killed.close()
    removeDirectory(directory)
  })

  it('refuses what is not a whole backup, and changes nothing', async () => {
    const directory = newHome()
    const path = join(directory, 'state', 'deputy.db')
    await openStore(path).close()
    const file = join(outside, 'whole.tar')
    await deputy(directory, 'backup', file)
    const before = readFileSync(path)
    const cut = join(outside, 'cut.tar')
    writeFileSync(cut, readFileSync(file).subarray(0, 20_000))
    writeFileSync(join(outside, 'text.tar'), 'not a tar file '.repeat(100))
    for (const wrong of [cut, join(outside, 'text.tar'), join(outside, 'nowhere.tar')])
      expect((await deputy(directory, 'restore', wrong)).code).not.toBe(0)
    const whole = readFileSync(file)
    const database = whole.subarray(512, 512 + Number.parseInt(whole.toString('latin1', 124, 135), 8))
    const tampered = join(outside, 'tampered.tar')
    const blob = `blobs/${'0'.repeat(64)}`
    writeFileSync(tampered, await tarOf({ [blob]: Buffer.from('x'), 'deputy.db': database }))
    expect((await deputy(directory, 'restore', tampered)).stderr).toContain(`wrong checksum of ${blob}`)
    // A page that nothing reads during a restore but the check.
    writeFileSync(join(outside, 'copy.db'), database)
    const copy = openDatabase(join(outside, 'copy.db'))
    const page = Number(copy.get("select rootpage from sqlite_schema where name = 'output'")?.rootpage)
    copy.close()
    const damaged = Buffer.from(database).fill(0xff, (page - 1) * 4096, page * 4096)
    writeFileSync(tampered, await tarOf({ 'deputy.db': damaged }))
    expect((await deputy(directory, 'restore', tampered)).stderr).toContain('damaged')
    expect(readFileSync(path).equals(before)).toBe(true)
    removeDirectory(directory)
  })
})
