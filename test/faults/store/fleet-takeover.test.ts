import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { FaultPoint } from '../../../src/engine/engine-context.ts'
import { newHome, type TestDaemon, useDaemons } from '../../support/daemon.ts'
import { until } from '../../support/engine.ts'
import { missingPostgres, type PostgresServer, startPostgres } from '../../support/postgres.ts'
import { startPostgresLink } from '../../support/postgres-link.ts'
import { requireOrSkip } from '../../support/require.ts'
import { createSshLab, missingForNamespaces, missingForSshLab, type SshLab } from '../../support/sshlab.ts'

// On loopback an address does not prove which computer it is.
const missing = missingPostgres() ?? missingForSshLab() ?? missingForNamespaces()
const LINES = Array.from({ length: 80 }, (_, index) => `line ${index + 1}\n`).join('')

describe.skipIf(requireOrSkip(missing))('a job on a node whose daemon is gone', { timeout: 200_000 }, () => {
  const startAny = useDaemons()
  let server: PostgresServer
  let lab: SshLab
  beforeAll(async () => {
    server = await startPostgres()
    lab = await createSshLab({ nodes: 1 })
  })
  afterAll(async () => {
    await lab?.close()
    await server?.remove()
  })

  const start = async (
    schema: string,
    name: string,
    {
      key = 'the key of the fleet, of many letters',
      lease = 30,
      env = {},
      directory = newHome(),
      url = server.url(schema),
    } = {},
  ): Promise<TestDaemon> => {
    const nodes = lab.nodes.map(({ id, address, port }) => ({
      ...{ id, host: address, port, user: lab.user, identity: lab.identity },
    }))
    const thresholds = { cpu: 100, memory: 100, load: 1000 }
    mkdirSync(join(directory, 'config'))
    writeFileSync(join(directory, 'key'), key)
    writeFileSync(
      join(directory, 'config/config.yaml'),
      JSON.stringify({
        cluster: { nodes, thresholds, ssh: { configFile: 'none' } },
        fleet: { lease, key: join(directory, 'key') },
        secrets: { TOKEN: { from: 'env:TOKEN', runtimes: ['node'], networks: ['full'] } },
      }),
    )
    return startAny({
      directory,
      env: { DEPUTY_STORE: url, DEPUTY_NAME: name, TOKEN: 'hunter2-hunter2', ...env },
    })
  }
  /** Lets the lease of one daemon expire, and the others be in the fleet for long enough to notice. */
  const expire = async (schema: string, name: string): Promise<void> => {
    await server.query(`
      update ${schema}.daemons set lease_until = now() - interval '1 s' where name = '${name}';
      update ${schema}.daemons set held_since = now() - interval '1 hour' where name <> '${name}'`)
  }
  const node = { runtime: 'node', network: 'full' }

  const expectNoMachine = ({ client }: TestDaemon): Promise<void> =>
    until(async () => (await client.machines()).length === 0, 'no machine is recorded', 60_000)

  const untilTakenOver = ({ client }: TestDaemon, id: string): Promise<void> =>
    until(
      async () =>
        (await client.events(id)).some(({ type, data }) => type === 'reattached' && data.from === 'first'),
      'another daemon takes the job over',
      90_000,
    )

  // One for each kind of record that a daemon can leave: no node yet, nothing sent, running, machine to destroy.
  const POINTS = ['claimed', 'starting', 'started', 'settled'] satisfies FaultPoint[]

  it.each(POINTS)('after the step "%s" ends through another daemon, and runs once', async point => {
    const schema = `takeover_${point}`
    const manifest = {
      task: 'echo begun; sleep 0.5; echo ran >> "$HOME/$KEY"; cp "$HOME/$KEY" out.txt; echo done',
      ...{ ...node, artifacts: ['out.txt'], env: { KEY: `takeover-${point}` }, idempotency_key: 'once' },
    }
    const lease = 6
    const victim = await start(schema, 'victim', { lease, env: { DEPUTY_FAULT_POINT: point } })
    // The answer may not arrive: then the same submit is repeated, as a careful client does.
    await victim.client.submit(manifest).catch(() => undefined)
    expect(await victim.ended()).toBe('SIGKILL')
    const heir = await start(schema, 'heir', { lease })
    await expire(schema, 'victim')
    const { job_id } = await heir.client.submit(manifest)
    const view = await heir.client.wait(job_id, { timeoutMs: 110_000, signal: AbortSignal.timeout(115_000) })
    expect(view).toMatchObject({ status: 'success', exit_code: 0 })
    const { output, artifacts } = await heir.client.result(job_id)
    expect(output).toBe('begun\ndone\n')
    expect(artifacts).toMatchObject([{ path: 'out.txt', size: 'ran\n'.length }])
    await expectNoMachine(heir)
  })

  it('continues at the same offset, redacted, and stays with the other daemon when the first is back', async () => {
    const schema = 'takeover_suspended'
    const first = await start(schema, 'first')
    const second = await start(schema, 'second')
    await second.client.drainDaemon('second', true)
    const { job_id } = await first.client.submit({
      task: 'for i in $(seq 1 80); do echo "line $i"; sleep 0.1; done; echo "token $TOKEN"; echo ran >> "$HOME/suspended"',
      ...{ ...node, secrets: ['TOKEN'] },
    })
    await until(async () => (await second.client.get(job_id)).output_bytes > 0, 'it prints', 60_000)
    await second.client.drainDaemon('second', false)
    first.process.kill('SIGSTOP')
    await expire(schema, 'first')
    await untilTakenOver(second, job_id)
    first.process.kill('SIGCONT')
    await second.client.wait(job_id, { timeoutMs: 110_000, signal: AbortSignal.timeout(115_000) })
    expect(await second.client.result(job_id)).toMatchObject({
      ...{ status: 'success', attempts: 1 },
      output: `${LINES}token [redacted]\n`,
    })
    expect(readFileSync(join(lab.nodes[0]!.home, 'suspended'), 'utf8')).toBe('ran\n')
    await until(
      async () => (await second.client.daemons()).every(({ state }) => state === 'up'),
      'the first daemon is back',
      60_000,
    )
    await expectNoMachine(second)
  })

  it('runs once when its daemon lost the database alone, and still follows it on the node', async () => {
    const schema = 'takeover_partition'
    const directory = newHome()
    const link = await startPostgresLink(server, directory)
    onTestFinished(link.close)
    const first = await start(schema, 'first', { directory, url: server.url(schema, directory) })
    const { job_id } = await first.client.submit({
      task: 'echo begun; until [ -e "$HOME/go" ]; do sleep 0.1; done; echo ran >> "$HOME/partition"; echo done',
      ...node,
    })
    await until(async () => (await first.client.get(job_id)).output_bytes > 0, 'it prints', 60_000)
    const second = await start(schema, 'second')
    link.cut()
    await expire(schema, 'first')
    await untilTakenOver(second, job_id)
    link.mend()
    await until(() => first.log().includes('registering again'), 'the first daemon notices', 90_000)
    writeFileSync(join(lab.nodes[0]!.home, 'go'), '')
    await second.client.wait(job_id, { timeoutMs: 110_000, signal: AbortSignal.timeout(115_000) })
    expect(await second.client.result(job_id)).toMatchObject({
      ...{ status: 'success', attempts: 1, output: 'begun\ndone\n' },
    })
    expect(readFileSync(join(lab.nodes[0]!.home, 'partition'), 'utf8')).toBe('ran\n')
    await expectNoMachine(second)
  })

  it('waits for its daemon where the other has another key', async () => {
    const schema = 'takeover_other_key'
    const first = await start(schema, 'first')
    const { job_id } = await first.client.submit({ task: 'echo begun; sleep 2; echo done', ...node })
    await until(async () => (await first.client.get(job_id)).output_bytes > 0, 'it prints', 60_000)
    await first.kill()
    const stranger = await start(schema, 'stranger', { key: 'another key, of just as many letters' })
    const heir = await start(schema, 'heir')
    await expire(schema, 'first')
    await heir.client.wait(job_id, { timeoutMs: 110_000, signal: AbortSignal.timeout(115_000) })
    expect(await stranger.client.result(job_id)).toMatchObject({ status: 'success', output: 'begun\ndone\n' })
    const keys = new Map((await heir.client.daemons()).map(({ name, key_id }) => [name, key_id]))
    expect(keys.get('heir')).toBe(keys.get('first'))
    expect(keys.get('heir')).not.toBe(keys.get('stranger'))
    expect(stranger.log()).not.toContain('took over')
    expect(heir.log()).toContain('took over')
  })
})
