import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { Config } from '../../../src/config/schema.ts'
import type { Readiness } from '../../../src/ports.ts'
import { begin, never, run } from '../../support/begin-lab.ts'
import { hasCurl } from '../../support/curl.ts'
import { type TestEngine, until } from '../../support/engine.ts'
import { freePort } from '../../support/free-port.ts'
import type { Lab, LabOptions } from '../../support/proxmox-provider.ts'

const callbackOf = ([readiness]: readonly Readiness[]) =>
  readiness!.checks.find(check => check.name === 'callback')

/** Nothing on the cluster, nothing on record. */
const expectClean = async (lab: Lab, engine: TestEngine) => {
  await until(
    async () =>
      lab.machines().length === 0 &&
      lab.seeds().length === 0 &&
      (await engine.store.listMachines()).length === 0,
    'the cluster is clean',
    30_000,
  )
}

const patience =
  (seconds: number) =>
  (config: Config): void => {
    config.supervision.provisioning = seconds
  }

/** Boots for ever: it neither calls nor answers. */
const deaf: LabOptions['emulator'] = {
  guests: {
    start: async () => ({ stop: async () => {}, shutdown: async () => true, agent: () => undefined }),
  },
}

describe.skipIf(!hasCurl)('doctor with a throw-away machine', () => {
  it.each(['iso', 'http', 'agent'] as const)(
    'tells how long it took until the machine was heard of, seeded by %s, and leaves nothing',
    async injection => {
      const { lab, engine } = await begin({ provider: { injection } })
      const [readiness] = await engine.deputy.probe(never)
      expect(readiness).toMatchObject({ runtime: 'proxmox', ready: true })
      expect(callbackOf([readiness!])).toEqual({
        name: 'callback',
        status: 'ok',
        message: expect.stringMatching(
          /^VM 100\d{3} on pve\d was heard of through http:\/\/127\.0\.0\.1:\d+ after [\d.]+ s \(clone [\d.]+ s, configure [\d.]+ s, start [\d.]+ s, boot [\d.]+ s\)$/,
        ),
      })
      // It is destroyed before the answer comes.
      expect(lab.machines()).toEqual([])
      expect(lab.seeds()).toEqual([])
      expect(await engine.store.listMachines()).toEqual([])
    },
  )

  it.each([
    ['127.0.0.1', 'warning', /^a job with network: none reached the node pve\d at 127\.0\.0\.1:\d+/],
    ['127.0.0.2', 'ok', /^a job with network: none did not reach the node pve\d at 127\.0\.0\.2:\d+/],
  ])(
    'tries from inside whether the node answers at %s, and results say what was seen',
    async (address, status, message) => {
      const { lab, engine } = await begin({ emulator: { nodes: ['pve1'] } })
      lab.emulator.state.clusterFirewall.options.enable = 1
      const { state, standard } = lab.emulator
      for (const who of [standard.user, `${standard.user}!${standard.tokenName}`])
        state.acl.push({ path: '/', who, role: 'Watch', propagate: false })
      state.roles.set('Watch', new Set(['Sys.Audit']))
      for (const node of state.nodes.values()) node.address = address
      const isolationOf = async () => {
        const view = await run(engine, { task: 'true', retries: 0 })
        return (await engine.deputy.result(view.job_id, {})).isolation.join(', ')
      }
      expect(await isolationOf()).toContain('the node itself was not tried: deputy doctor --probe')
      const [readiness] = await engine.deputy.probe(never)
      const check = readiness!.checks.find(one => one.name === 'node')
      expect(check).toMatchObject({ status, message: expect.stringMatching(message) })
      expect(readiness!.ready).toBe(true)
      if (status === 'warning') expect(check!.fix).toContain('arp_ignore=1')
      expect(await isolationOf()).toContain(
        status === 'warning' ? `the node answered at ${address}` : `the node did not answer at ${address}`,
      )
    },
  )

  it('does not claim to have tried the node where it could not', async () => {
    const { engine } = await begin({ guests: { agent: false } })
    const [readiness] = await engine.deputy.probe(never)
    expect(readiness!.checks.find(one => one.name === 'node')).toMatchObject({
      status: 'warning',
      message: expect.stringContaining('was not tried'),
    })
  })

  it('is a machine as jobs get it, and provably ours', async () => {
    const { lab, engine } = await begin({ guests: { bootMs: 1500 } })
    const probing = engine.deputy.probe(never)
    await until(() => lab.machines().some(vm => vm.status === 'running'), 'it boots', 20_000)
    const [vm] = lab.machines()
    expect(vm).toMatchObject({ pool: 'jobs', config: { tags: 'deputy;deputy-lab' } })
    expect(vm!.firewall.options).toMatchObject({ enable: 1, policy_out: 'DROP' })
    const [record] = await engine.store.listMachines()
    expect(vm!.config.name).toBe(`deputy-${record!.id}`)
    await probing
  })

  it('names the address that a machine cannot reach, what it met there, and the settings that matter', async () => {
    const { lab, engine } = await begin({
      provider: { callback: { host: '127.0.0.1', port: 0, url: 'http://127.0.0.1:1' } },
      engine: { config: patience(4) },
    })
    const [readiness] = await engine.deputy.probe(never)
    expect(readiness!.ready).toBe(false)
    expect(callbackOf([readiness!])).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(
        /^VM \d+ has booted, but cannot reach http:\/\/127\.0\.0\.1:1: curl: \(7\)/,
      ),
      fix: expect.stringMatching(/firewall.*CALLBACK_HOST.*CALLBACK_PORT.*PROXMOX_CHANNEL=agent/),
    })
    await expectClean(lab, engine)
  })

  it('tells a machine that does not start its runner from one that reaches nothing', async () => {
    // The template does not run cloud-init, but has an agent.
    const { lab, engine } = await begin({ guests: { bootMs: 600_000 }, engine: { config: patience(4) } })
    const [readiness] = await engine.deputy.probe(never)
    expect(callbackOf([readiness!])).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(/has booted and reaches http:.*, but its runner did not call/),
      fix: expect.stringContaining('cloud-init status --long'),
    })
    await expectClean(lab, engine)
  })
})

describe('doctor --probe with a machine that does not work', () => {
  it('ends when the machine never boots', async () => {
    const { lab, engine } = await begin({ emulator: deaf, engine: { config: patience(3) } })
    const [readiness] = await engine.deputy.probe(never)
    expect(callbackOf([readiness!])).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(/heard of neither at http:\S+ nor through its guest agent/),
      fix: expect.stringContaining('console'),
    })
    await expectClean(lab, engine)
  })

  it('names the phase that failed, in the words of Proxmox VE', async () => {
    const { lab, engine } = await begin()
    lab.emulator.faults.addTask({
      type: 'qmstart',
      step: 'start',
      error: 'start failed: QEMU exited with code 1',
    })
    const [readiness] = await engine.deputy.probe(never)
    expect(callbackOf([readiness!])).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(/^not probed: it failed at start: .*QEMU exited with code 1/),
    })
    await expectClean(lab, engine)
  })

  it('boots nothing while what is needed for it is missing', async () => {
    const { lab, engine } = await begin()
    lab.emulator.state.roles.get('DeputyJobs')!.delete('VM.PowerMgmt')
    const [readiness] = await engine.deputy.probe(never)
    expect(readiness!.ready).toBe(false)
    expect(lab.emulator.requests.some(line => line.includes('/clone'))).toBe(false)
  })

  it.each([
    ['while it boots', (lab: Lab) => lab.machines().some(vm => vm.status === 'running')],
    ['while it is cloned', (lab: Lab) => lab.machines().length > 0],
  ])('takes the machine away when the asker leaves %s', async (_, arrived) => {
    const { lab, engine } = await begin({ emulator: deaf })
    const leave = new AbortController()
    const probing = engine.deputy.probe(leave.signal).catch((error: unknown) => error)
    await until(() => arrived(lab), 'it is under way', 20_000)
    leave.abort(new Error('left'))
    expect(await probing).toMatchObject({ message: 'left' })
    await expectClean(lab, engine)
  })

  it('leaves it to the next daemon when this one dies', async () => {
    const { lab, engine } = await begin({ emulator: deaf })
    void engine.deputy.probe(never).catch(() => {})
    await until(() => lab.machines().some(vm => vm.status === 'running'), 'it boots', 20_000)
    await engine.close()
    expect(lab.machines()).toHaveLength(1)
    const heir = await lab.open(lab.makeProvider())
    await expectClean(lab, heir)
  })
})

describe('doctor without a machine', () => {
  it('shows the address and how to try it', async () => {
    const port = await freePort()
    const { lab, engine } = await begin({ provider: { callback: { host: '127.0.0.1', port } } })
    const readiness = await engine.deputy.doctor(never)
    expect(callbackOf(readiness)).toEqual({
      name: 'callback',
      status: 'ok',
      message: `machines report to http://127.0.0.1:${port} (not tried from a machine: deputy doctor --probe)`,
    })
    expect(lab.emulator.requests.some(line => line.includes('/clone'))).toBe(false)
  })

  it('detects that another program has the port', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await new Promise(resolve => other.once('listening', resolve))
    const { port } = other.address() as { port: number }
    const { engine } = await begin({ provider: { callback: { host: '127.0.0.1', port } } })
    expect(callbackOf(await engine.deputy.doctor(never))).toMatchObject({
      status: 'failed',
      message: `another program listens on port ${port}, where machines are to report`,
      fix: expect.stringContaining('CALLBACK_PORT'),
    })
    other.close()
  })
})
