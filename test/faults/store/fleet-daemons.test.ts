import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { resolveHome } from '../../../src/config/home.ts'
import { noProvider } from '../../support/cli.ts'
import { newHome, type TestDaemon, useDaemons } from '../../support/daemon.ts'
import { until } from '../../support/engine.ts'
import { missingPostgres, type PostgresServer, startPostgres } from '../../support/postgres.ts'
import { requireOrSkip } from '../../support/require.ts'

const startAny = useDaemons()

/** Prints in pieces, so that some of it comes before a fault and some after. */
const TASK = 'for i in $(seq 1 60); do echo "line $i"; sleep 0.05; done; echo data > out.txt'
const EXPECTED = Array.from({ length: 60 }, (_, i) => `line ${i + 1}\n`).join('')

const missing = missingPostgres() ?? (await noProvider())

describe.skipIf(requireOrSkip(missing))('a fleet of daemons', { timeout: 400_000 }, () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server?.remove())

  /** Each runs one job at a time. */
  const start = async (
    schema: string,
    name: string,
    lease = 60,
    directory = newHome(),
  ): Promise<TestDaemon> => {
    const { configFile } = resolveHome({ DEPUTY_HOME: directory })
    mkdirSync(dirname(configFile), { recursive: true })
    writeFileSync(configFile, `fleet: { lease: ${lease} }\nlimits: { running: 1 }\nhost: { allow: true }\n`)
    return startAny({ directory, env: { DEPUTY_STORE: server.url(schema), DEPUTY_NAME: name } })
  }

  const running = ({ client }: TestDaemon, id: string) =>
    until(async () => (await client.get(id)).output_bytes > 0, `job ${id} prints`, 90_000)

  const expectSuccess = async ({ client }: TestDaemon, id: string): Promise<void> => {
    await client.wait(id, { timeoutMs: 110_000, signal: AbortSignal.timeout(115_000) })
    const result = await client.result(id)
    expect(result).toMatchObject({ status: 'success', output: EXPECTED, attempts: 1 })
    const chunks: Uint8Array[] = []
    for await (const chunk of (await client.openArtifact(id, 'out.txt')).bytes) chunks.push(chunk)
    expect(Buffer.concat(chunks).toString()).toBe('data\n')
  }

  it('runs a job on a daemon with a free slot, and serves and cancels it through any other', async () => {
    const a = await start('any', 'a')
    const b = await start('any', 'b')
    const blocker = await a.client.submit({ task: 'echo busy; sleep 600', timeout: 700 })
    await running(a, blocker.job_id)
    const other = await a.client.submit({ task: 'echo busy; sleep 600', timeout: 700 })
    await running(b, other.job_id)
    expect((await b.client.daemons()).map(({ name, state, jobs }) => ({ name, state, jobs }))).toEqual([
      { name: 'a', state: 'up', jobs: 1 },
      { name: 'b', state: 'up', jobs: 1 },
    ])
    for (const { job_id } of [blocker, other]) {
      await b.client.cancel(job_id)
      await until(async () => (await a.client.get(job_id)).status === 'cancelled', 'it is cancelled', 90_000)
    }
    const { job_id } = await b.client.submit({ task: TASK, artifacts: ['out.txt'], timeout: 120 })
    await expectSuccess(a, job_id)
    await expectSuccess(b, job_id)
  })

  it('lets no write of a suspended daemon land, and attaches to its jobs when it is back', async () => {
    const victim = await start('suspended', 'victim', 3)
    const { job_id } = await victim.client.submit({ task: `${TASK}; sleep 600`, timeout: 700 })
    await running(victim, job_id)
    const witness = await start('suspended', 'witness', 20)
    const stateOfVictim = async () =>
      (await witness.client.daemons()).find(({ name }) => name === 'victim')?.state
    victim.process.kill('SIGSTOP')
    await until(async () => (await stateOfVictim()) === 'gone', 'it is fenced', 100_000)
    const before = await witness.client.get(job_id)
    victim.process.kill('SIGCONT')
    await until(() => victim.log().includes('registering again'), 'it notices', 90_000)
    await until(async () => (await stateOfVictim()) === 'up', 'it is back', 90_000)
    const { client } = witness
    const hasAll = async () => (await client.get(job_id)).output_bytes === EXPECTED.length
    await until(hasAll, 'all output is stored', 90_000)
    await client.cancel(job_id)
    await until(async () => (await client.get(job_id)).status === 'cancelled', 'it is cancelled', 90_000)
    expect(await client.result(job_id)).toMatchObject({ output: EXPECTED, attempts: before.attempts })
  })

  it('ends each job once and completely while each daemon is killed and the server restarts', async () => {
    const names = ['a', 'b', 'c'] as const
    const fleet = await Promise.all(names.map(name => start('killed', name)))
    const marks = join(fleet[0]!.directory, 'marks')
    const ids = new Map<string, number>()
    for (let n = 0; n < 12; n++) {
      // Half of them leave a mark outside, which shows a second run.
      const task = `for i in $(seq 1 20); do echo "line $i"; sleep 0.02; done`
      const manifest =
        n % 2 === 0
          ? { task, timeout: 120 }
          : { task: `echo ${n} >> ${marks}; ${task}`, runtime: 'host', timeout: 120 }
      ids.set((await fleet[n % 3]!.client.submit(manifest)).job_id, n)
    }
    for (const index of names.keys()) {
      const { directory, kill } = fleet[index]!
      await kill()
      fleet[index] = await start('killed', names[index]!, 60, directory)
    }
    await server.stop('SIGQUIT')
    await server.start()
    const { client } = fleet[1]!
    for (const id of ids.keys()) {
      await client.wait(id, { timeoutMs: 110_000, signal: AbortSignal.timeout(115_000) })
      expect(await client.result(id)).toMatchObject({
        status: 'success',
        output: EXPECTED.split('\n').slice(0, 20).join('\n').concat('\n'),
      })
    }
    const marked = readFileSync(marks, 'utf8').trim().split('\n').map(Number)
    expect(marked.sort((x, y) => x - y)).toEqual([...ids.values()].filter(n => n % 2 === 1))
  })

  it('starts a job on one daemon when the job that it needs has succeeded on another', async () => {
    const a = await start('needs', 'a')
    const b = await start('needs', 'b')
    await a.client.drainDaemon('b', true)
    const needed = await b.client.submit({
      ...{ task: 'echo begun; sleep 1; echo data > out.txt', artifacts: ['out.txt'], timeout: 120 },
    })
    await running(a, needed.job_id)
    const { job_id } = await b.client.submit({
      ...{ task: 'cat $(find . -name out.txt)', needs: [needed.job_id], timeout: 120 },
    })
    await b.client.drainDaemon('a', true)
    await b.client.drainDaemon('b', false)
    await b.client.wait(job_id, { timeoutMs: 110_000, signal: AbortSignal.timeout(115_000) })
    expect(await a.client.result(job_id)).toMatchObject({ status: 'success', output: 'data\n', attempts: 1 })
    const ranOn = (id: string) =>
      server.query(
        `select name from needs.daemons d join needs.jobs j on j.daemon = d.id where j.id = '${id}'`,
      )
    expect(await ranOn(needed.job_id)).toEqual([{ name: 'a' }])
    expect(await ranOn(job_id)).toEqual([{ name: 'b' }])
  })

  it('drains a daemon: its job ends, and others take the rest', async () => {
    const a = await start('drain', 'a')
    const first = await a.client.submit({ task: 'echo busy; sleep 600', timeout: 700 })
    await running(a, first.job_id)
    const b = await start('drain', 'b')
    await b.client.drainDaemon('a', true)
    await expect(b.client.drainDaemon('nobody', true)).rejects.toThrow("No daemon 'nobody'")
    await b.client.cancel(first.job_id)
    const stateOfA = async () => (await b.client.daemons()).find(({ name }) => name === 'a')
    await until(async () => (await stateOfA())?.jobs === 0, 'it is drained', 90_000)
    expect((await stateOfA())?.state).toBe('draining')
    const { job_id } = await a.client.submit({ task: TASK, artifacts: ['out.txt'], timeout: 120 })
    await expectSuccess(a, job_id)
    expect(
      await server.query(
        `select name from drain.daemons d join drain.jobs j on j.daemon = d.id where j.id = '${job_id}'`,
      ),
    ).toEqual([{ name: 'b' }])
  })
})
