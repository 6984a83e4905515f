import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  BUSYBOX,
  createEngine,
  importBusybox,
  missingForEngine,
  type TestEngine,
} from '../support/containers/engines.ts'
import { newHome, type TestDaemon, useDaemons } from '../support/daemon.ts'
import { until } from '../support/engine.ts'
import { missingPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts'

const missing = missingForEngine('docker') ?? missingPostgres()
const LINES = Array.from({ length: 60 }, (_, index) => `line ${index + 1}\n`).join('')

describe.skipIf(missing !== undefined)('a fleet on one container engine', { timeout: 200_000 }, () => {
  const startAny = useDaemons()
  let server: PostgresServer
  let engine: TestEngine
  beforeAll(async () => {
    server = await startPostgres()
    engine = await createEngine('docker')
    await importBusybox(engine)
  })
  afterAll(async () => {
    await engine?.close()
    await server?.remove()
  })

  const start = (name: string): Promise<TestDaemon> => {
    const directory = newHome()
    mkdirSync(join(directory, 'config'))
    writeFileSync(join(directory, 'key'), 'the key of the fleet, of many letters')
    const fleet = { lease: 30, key: join(directory, 'key') }
    const container = { host: engine.host, image: BUSYBOX }
    writeFileSync(join(directory, 'config/config.yaml'), JSON.stringify({ fleet, container }))
    return startAny({ directory, env: { DEPUTY_STORE: server.url('fleet'), DEPUTY_NAME: name } })
  }

  it('takes over the job of a daemon that was killed, and the machine that it kept', async () => {
    const first = await start('first')
    const kept = await first.client.submit({
      ...{ task: 'echo one > "$HOME/file"', runtime: 'container', lifecycle: 'persistent' },
    })
    await first.client.wait(kept.job_id, { timeoutMs: 60_000, signal: AbortSignal.timeout(65_000) })
    const { job_id } = await first.client.submit({
      ...{ task: 'for i in $(seq 1 60); do echo "line $i"; sleep 0.1; done', runtime: 'container' },
    })
    await until(async () => (await first.client.get(job_id)).output_bytes > 0, 'it prints', 60_000)
    await first.kill()
    const { client } = await start('second')
    await server.query(`
      update fleet.daemons set lease_until = now() - interval '1 s' where name = 'first';
      update fleet.daemons set held_since = now() - interval '1 hour' where name = 'second'`)
    const end = await client.wait(job_id, { timeoutMs: 110_000, signal: AbortSignal.timeout(115_000) })
    expect(end).toMatchObject({ status: 'success' })
    expect(await client.result(job_id)).toMatchObject({ output: LINES, attempts: 1 })

    const [machine] = await client.machines()
    const again = { task: 'cat "$HOME/file"', runtime: 'container', machine: machine!.machine_id }
    const followUp = await client.submit(again)
    await client.wait(followUp.job_id, { timeoutMs: 60_000, signal: AbortSignal.timeout(65_000) })
    expect(await client.result(followUp.job_id)).toMatchObject({ status: 'success', output: 'one\n' })
    await client.destroyMachine(machine!.machine_id)
    await until(async () => (await client.machines()).length === 0, 'no machine is recorded', 60_000)
    const { text } = await engine.api('GET', '/v1.40/containers/json?all=1')
    expect(JSON.parse(text)).toEqual([])
  })
})
