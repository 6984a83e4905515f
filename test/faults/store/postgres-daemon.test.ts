import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { noProvider } from '../../support/cli.ts'
import { newHome, type TestDaemon, useDaemons } from '../../support/daemon.ts'
import { until } from '../../support/engine.ts'
import { missingPostgres, type PostgresServer, startPostgres } from '../../support/postgres.ts'
import { requireOrSkip } from '../../support/require.ts'

const start = useDaemons()

/** Prints in pieces, so that some of it comes before a crash and some after. */
const TASK = 'for i in $(seq 1 60); do echo "line $i"; sleep 0.05; done; echo data > out.txt'
const EXPECTED = Array.from({ length: 60 }, (_, i) => `line ${i + 1}\n`).join('')

const submitAndSeeOutput = async ({ client }: TestDaemon): Promise<string> => {
  const { job_id } = await client.submit({ task: TASK, artifacts: ['out.txt'], timeout: 120 })
  await until(async () => (await client.get(job_id)).output_bytes > 0, 'some output', 90_000)
  return job_id
}

const expectSuccess = async ({ client }: TestDaemon, id: string): Promise<void> => {
  await client.wait(id, { timeoutMs: 90_000, signal: AbortSignal.timeout(100_000) })
  const result = await client.result(id)
  expect(result).toMatchObject({ status: 'success', output: EXPECTED })
  expect(result.artifacts.map(({ path }) => path)).toEqual(['out.txt'])
}

const missing = missingPostgres() ?? (await noProvider())

describe.skipIf(requireOrSkip(missing))('a daemon on PostgreSQL', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server?.remove())

  it('finishes its jobs when it is killed, and when the server crashes', async () => {
    const directory = newHome()
    const env = { DEPUTY_STORE: server.url('daemon') }
    const victim = await start({ directory, env })
    const first = await submitAndSeeOutput(victim)
    await victim.kill()
    const daemon = await start({ directory, env })
    await expectSuccess(daemon, first)

    const second = await submitAndSeeOutput(daemon)
    await server.stop('SIGQUIT')
    await server.start()
    await expectSuccess(daemon, second)
    expect((await daemon.client.list()).jobs.map(({ job_id }) => job_id)).toEqual([second, first])
    expect(daemon.log()).not.toContain('refused a statement')
    expect(existsSync(join(daemon.home.stateDir, 'deputy.db'))).toBe(false)
  })
})
