import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { createSecrets } from '../../../src/config/resolve-secrets.ts'
import { createProxmox } from '../../../src/proxmox/proxmox-client.ts'
import { systemClock } from '../../../src/proxmox/proxmox-clock.ts'
import { parseSettings } from '../../../src/proxmox/proxmox-settings.ts'
import { begin, clean, never, run, useLab } from '../../support/begin-lab.ts'
import { hasCurl } from '../../support/curl.ts'
import { type TestEngine, until } from '../../support/engine.ts'
import { freePort } from '../../support/free-port.ts'
import type { Lab, LabOptions } from '../../support/proxmox-provider.ts'

describe.skipIf(!hasCurl)('a job in a VM', () => {
  it.each(['iso', 'http'] as const)(
    'runs from clone to destroy with %s injection, and tells how long each phase took',
    async injection => {
      const { lab, engine } = await begin({ provider: { injection } })
      const view = await run(engine, { task: 'echo hello; echo oops >&2; exit 3' })
      expect(view).toMatchObject({ status: 'failed', exit_code: 3, runtime: 'proxmox' })
      const result = await engine.deputy.result(view.job_id, {})
      expect(result.output).toContain('hello\n')
      expect(result.output).toContain('oops\n')
      for (const phase of ['clone', 'configure', 'start', 'boot', 'first_callback', 'run'])
        expect(view.phases).toHaveProperty(phase)
      await clean(lab)
      await until(async () => (await engine.deputy.machines()).length === 0, 'the record is gone')
      await until(
        async () => 'destroy' in (await engine.deputy.result(view.job_id, {})).phases,
        'all are told',
      )
    },
  )

  it('is made with one look at the guests of the cluster, and one at its own configuration', async () => {
    const lab = await useLab()
    // However busy the computer is, it is done in a moment.
    const began = Date.now()
    const clock = { ...systemClock, now: () => began + Math.floor((Date.now() - began) / 20) }
    const proxmox = createProxmox(parseSettings(lab.emulator.env()), { clock })
    const engine = await lab.open(lab.makeProvider({ proxmox }), {
      config: config => {
        config.supervision.cleanup = 600
      },
    })
    const asked = (pattern: RegExp) => lab.emulator.requests.filter(line => pattern.test(line)).length
    const LOOK = /GET .*\/cluster\/resources/
    const OWN = /GET .*\/qemu\/100\d+\/config/
    // With the first job everything is looked at, ways and rights among it.
    await run(engine, { task: 'true' })
    await until(async () => (await engine.deputy.machines()).length === 0, 'the first is gone', 30_000)
    const before = [asked(LOOK), asked(OWN)] as const
    const { job_id } = await engine.deputy.submit({ task: 'sleep 30', runtime: 'proxmox' }, 'test')
    await until(async () => (await engine.deputy.get(job_id)).status === 'running', 'it runs', 30_000)
    expect([asked(LOOK) - before[0], asked(OWN) - before[1]]).toEqual([1, 1])
    await engine.deputy.cancel(job_id, 'test')
    await clean(lab)
  })

  it('gets its files, environment and secrets, and gives its artifacts, without a secret in its output', async () => {
    const { lab, engine } = await begin({
      engine: { secrets: createSecrets({ DEPLOY_KEY: 'env:KEY' }, { KEY: 'hunter2hunter2' }) },
    })
    const view = await run(engine, {
      task: 'cat in.txt; printf "%s|%s\\n" "$GREETING" "$DEPLOY_KEY"; mkdir -p out/deep; printf %s "$DEPLOY_KEY" | wc -c > out/deep/result.txt',
      files: [{ path: 'in.txt', text: 'given\n' }],
      env: { GREETING: `it's "$(id)"` },
      secrets: ['DEPLOY_KEY'],
      artifacts: ['out/**'],
    })
    expect(view.status).toBe('success')
    const result = await engine.deputy.result(view.job_id, {})
    expect(result.output).toBe(`given\nit's "$(id)"|[redacted]\n`)
    expect(result.artifacts).toMatchObject([{ path: 'out/deep/result.txt' }])
    await clean(lab)
  })

  it('belongs to us beyond doubt while it lives, and is filtered', async () => {
    const { lab, engine } = await begin()
    const { job_id } = await engine.deputy.submit(
      { task: 'echo up; sleep 60', runtime: 'proxmox', resources: { cpu: 2, memory: '1G', disk: '12G' } },
      'test',
    )
    await until(async () => (await engine.deputy.get(job_id)).status === 'running', 'it runs', 30_000)
    const [vm] = lab.machines()
    expect(vm).toMatchObject({ pool: 'jobs' })
    expect(vm!.vmid).toBeGreaterThanOrEqual(100_000)
    expect(vm!.config).toMatchObject({ cores: '2', memory: '1024', tags: 'deputy;deputy-lab', onboot: '0' })
    expect(vm!.config.name).toMatch(/^deputy-/)
    expect(vm!.config.scsi0).toContain('size=12G')
    expect(vm!.firewall.options).toMatchObject({ enable: 1, policy_in: 'DROP', policy_out: 'DROP' })
    expect(vm!.firewall.rules).toMatchObject([
      { type: 'out', action: 'ACCEPT', dest: '127.0.0.1', enable: 1 },
    ])
    expect(JSON.stringify(await engine.store.listMachines())).not.toMatch(/"token"/)
    await engine.deputy.cancel(job_id, 'test')
    expect((await engine.deputy.wait(job_id, { timeoutMs: 30_000, signal: never })).status).toBe('cancelled')
    await clean(lab)
  })

  it('ends in time by its own clock', async () => {
    const { lab, engine } = await begin()
    const view = await run(engine, { task: 'echo begin; sleep 100', timeout: 3 })
    expect(view.status).toBe('timeout')
    expect((await engine.deputy.result(view.job_id, {})).output).toBe('begin\n')
    await clean(lab)
  })

  it('many at once share the slots and leave nothing behind', async () => {
    const { lab, engine } = await begin({ provider: { limit: 4 } })
    const jobs = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        engine.deputy.submit({ task: `echo job ${i}`, runtime: 'proxmox' }, 'test'),
      ),
    )
    for (const [i, { job_id }] of jobs.entries()) {
      const view = await engine.deputy.wait(job_id, { timeoutMs: 55_000, signal: never })
      expect(view.status).toBe('success')
      expect((await engine.deputy.result(job_id, {})).output).toBe(`job ${i}\n`)
    }
    await clean(lab)
  })
})

describe('a job in a VM without a network', () => {
  it.each(['agent', 'iso'] as const)('reports through the guest agent, seeded by %s', async injection => {
    const { lab, engine } = await begin({ provider: { injection, channel: 'agent' } })
    const view = await run(engine, {
      task: 'cat in.txt; seq 1 60000; echo "ünï→" >&2; printf done > result.txt; exit 4',
      files: [{ path: 'in.txt', text: `${'x'.repeat(120_000)}\n` }],
      artifacts: ['result.txt'],
      workspace: { patch: true },
    })
    expect(view).toMatchObject({ status: 'failed', exit_code: 4 })
    const job = await engine.deputy.get(view.job_id)
    const lines = Array.from({ length: 60_000 }, (_, i) => `${i + 1}\n`).join('')
    expect(job.output_bytes).toBe(120_001 + lines.length + Buffer.byteLength('ünï→\n'))
    expect((await engine.deputy.result(view.job_id, {})).artifacts).toMatchObject([
      { path: 'result.txt', size: 4 },
    ])
    expect((await engine.deputy.result(view.job_id, {})).patch?.size).toBeGreaterThan(0)
    expect(lab.emulator.requests.some(line => line.includes('/agent/exec'))).toBe(true)
    await clean(lab)
  })
})

describe.skipIf(!hasCurl)('when the cluster misbehaves', () => {
  it('an id that somebody else took means the next id', async () => {
    const { lab, engine } = await begin({ provider: { vmids: { first: 100_000, last: 100_003 } } })
    lab.emulator.faults.addTask({
      type: 'qmclone',
      step: 'allocate',
      times: 2,
      error: 'unable to create VM 100000: config file already exists',
    })
    expect((await run(engine, { task: 'true' })).status).toBe('success')
    await clean(lab)
  })

  it('a clone whose answer was lost is found, not made twice', async () => {
    const { lab, engine } = await begin()
    lab.emulator.faults.addRequest({ match: '/clone', times: 1, loseAnswer: true })
    expect((await run(engine, { task: 'echo found' })).status).toBe('success')
    expect(lab.emulator.requests.filter(line => line.includes('/clone'))).toHaveLength(1)
    await clean(lab)
  })

  it('a clone that was never begun is begun again', async () => {
    const { lab, engine } = await begin()
    lab.emulator.faults.addRequest({ match: '/clone', times: 1, drop: 'before' })
    expect((await run(engine, { task: 'true' })).status).toBe('success')
    expect(lab.emulator.requests.filter(line => line.includes('/clone'))).toHaveLength(2)
    await clean(lab)
  })

  it.each([
    ['qmstart', 'start', 'start failed: QEMU exited with code 1'],
    ['qmclone', 'copy', 'storage went away'],
    ['imgcopy', 'copy', 'upload failed'],
  ])('a failure of %s is tried again, and the half-made machine is removed', async (type, step, error) => {
    const { lab, engine } = await begin()
    lab.emulator.faults.addTask({ type, step, error, times: 1 })
    const view = await run(engine, { task: 'true', retries: 2 })
    expect(view.status).toBe('success')
    await clean(lab)
  })

  it('a storage that is full ends the job with the words of Proxmox VE', async () => {
    const { lab, engine } = await begin({ provider: { template: '9001' } })
    lab.emulator.state.storages.get('local-lvm')!.total = 1
    const view = await run(engine, { task: 'true', retries: 0 })
    expect(view.status).toBe('failed')
    expect(view.error?.message).toContain('No space left on device')
    await clean(lab)
  })

  it('a machine that switches itself off before it speaks is told from a slow one', async () => {
    const { lab, engine } = await begin({
      emulator: {
        guests: {
          start: async spec => {
            setTimeout(() => spec.poweredOff(), 50)
            return { stop: async () => {}, shutdown: async () => true, agent: () => undefined }
          },
        },
      },
    })
    const view = await run(engine, { task: 'true', retries: 0 })
    expect(view.status).toBe('failed')
    expect(view.error?.message).toContain('switched itself off')
    await clean(lab)
  })

  it('a machine that somebody destroys in the middle is noticed', async () => {
    const { lab, engine } = await begin()
    const { job_id } = await engine.deputy.submit({ task: 'sleep 300', runtime: 'proxmox' }, 'test')
    await until(async () => (await engine.deputy.get(job_id)).status === 'running', 'it runs', 30_000)
    const [vm] = lab.machines()
    await vm!.guest?.stop()
    lab.emulator.state.vms.delete(vm!.vmid)
    const view = await engine.deputy.wait(job_id, { timeoutMs: 40_000, signal: never })
    expect(view.status).toBe('failed')
    expect(view.error).toMatchObject({
      code: 'lost',
      message: expect.stringContaining('does not exist any more'),
    })
    await clean(lab)
  })

  it('an outage in the middle of a job does no harm', async () => {
    const { lab, engine } = await begin()
    const { job_id } = await engine.deputy.submit(
      { task: 'echo a; sleep 3; echo b', runtime: 'proxmox' },
      'test',
    )
    await until(async () => (await engine.deputy.get(job_id)).status === 'running', 'it runs', 30_000)
    lab.emulator.faults.addRequest({ match: '/api2/', times: 12, drop: 'before' })
    const view = await engine.deputy.wait(job_id, { timeoutMs: 40_000, signal: never })
    expect(view.status).toBe('success')
    lab.emulator.faults.clear()
    await clean(lab)
  })

  it('a job that is cancelled while its machine is cloned leaves no clone', async () => {
    const { lab, engine } = await begin()
    lab.emulator.faults.addTask({ type: 'qmclone', step: 'copy', slower: 200 })
    const { job_id } = await engine.deputy.submit({ task: 'true', runtime: 'proxmox' }, 'test')
    await until(() => lab.machines().length > 0, 'the clone is being made', 20_000)
    await engine.deputy.cancel(job_id, 'test')
    expect((await engine.deputy.wait(job_id, { timeoutMs: 30_000, signal: never })).status).toBe('cancelled')
    await clean(lab)
  })

  it('never touches a machine that is not provably ours', async () => {
    const { lab, engine } = await begin()
    const { newVm } = await import('../../support/pve/state.ts')
    const foreign = newVm(100_500, 'pve1', {
      name: 'deputy-somebody',
      tags: 'deputy;deputy-lab',
      description: 'precious',
    })
    foreign.pool = 'jobs'
    lab.emulator.state.vms.set(100_500, foreign)
    expect((await run(engine, { task: 'true' })).status).toBe('success')
    await until(() => lab.machines().length === 1 && lab.seeds().length === 0, 'ours is gone', 30_000)
    const found = await lab.makeProvider().list(never)
    expect(found).toEqual([])
    expect(lab.emulator.state.vms.has(100_500)).toBe(true)
  })
})

describe.skipIf(!hasCurl)('when rights, templates or locks go away', () => {
  const running = async (engine: TestEngine, task: string) => {
    const { job_id } = await engine.deputy.submit({ task, runtime: 'proxmox' }, 'test')
    await until(async () => (await engine.deputy.get(job_id)).status === 'running', 'it runs', 30_000)
    return job_id
  }

  it('a token that is revoked in the middle takes no result away, and the machine is not forgotten', async () => {
    const { lab, engine } = await begin()
    const job_id = await running(engine, 'sleep 1; echo still here')
    lab.emulator.revokeToken()
    const view = await engine.deputy.wait(job_id, { timeoutMs: 30_000, signal: never })
    expect(view.status).toBe('success')
    expect((await engine.deputy.result(job_id, {})).output).toBe('still here\n')
    await until(
      async () => (await engine.store.listMachines()).some(machine => machine.lastError !== null),
      'the failure is noted',
      30_000,
    )
    const [record] = await engine.store.listMachines()
    expect(record).toMatchObject({ state: 'destroying' })
    expect(lab.machines()).toHaveLength(1)
  })

  it('a template that is gone ends the job with its name', async () => {
    const { lab, engine } = await begin()
    lab.emulator.state.vms.delete(9000)
    const view = await run(engine, { task: 'true', retries: 0 })
    expect(view.status).toBe('failed')
    expect(view.error?.message).toContain('"agent-template"')
    const named = await run(engine, { task: 'true', retries: 0, vmTemplate: '100' })
    expect(named.error?.message).toContain('"100"')
  })

  it('a machine whose lock no token can remove is reported with the command of the operator', async () => {
    const { lab, engine } = await begin()
    const job_id = await running(engine, 'echo x; sleep 60')
    lab.machines()[0]!.config.lock = 'backup'
    await engine.deputy.cancel(job_id, 'test')
    expect((await engine.deputy.wait(job_id, { timeoutMs: 50_000, signal: never })).status).toBe('cancelled')
    expect((await engine.store.listMachines())[0]).toMatchObject({ state: 'destroying' })
    expect(lab.machines()).toHaveLength(1)
    delete lab.machines()[0]!.config.lock
    await clean(lab)
  })

  it('a right that is missing is named, and nothing is left', async () => {
    const { lab, engine } = await begin()
    lab.emulator.state.roles.get('DeputyJobs')!.delete('VM.PowerMgmt')
    const view = await run(engine, { task: 'true', retries: 0 })
    expect(view.error?.message).toContain('VM.PowerMgmt')
    expect(view.error?.hint).toContain('pveum')
    await clean(lab)
  })
})

describe.skipIf(!hasCurl)('what nobody knows of', () => {
  it('is found by another daemon of the same installation, and removed with its seed', async () => {
    const lab = await useLab()
    const lost = lab.makeProvider()
    const machine = {
      id: '018f0000-0000-7000-8000-00000000000a',
      runtime: 'proxmox',
      jobId: null,
      details: {},
    }
    await lost.create({ machine, remember: async () => {}, signal: AbortSignal.timeout(30_000) })
    expect(lab.machines()).toHaveLength(1)
    const stranger = lab.makeProvider({ owner: 'other' })
    expect(await stranger.list(never)).toEqual([])
    const heir = lab.makeProvider()
    const [found] = await heir.list(never)
    expect(found).toMatchObject({
      id: machine.id,
      details: { vmid: expect.any(Number), seed: expect.stringContaining(machine.id) },
      createdAt: expect.any(Number),
    })
    await heir.destroy({ ...machine, details: found!.details }, AbortSignal.timeout(30_000))
    expect(lab.machines()).toEqual([])
    expect(lab.seeds()).toEqual([])
    for (const provider of [lost, stranger, heir]) await provider.close()
  })

  it('a seed image without a machine is found and removed too', async () => {
    const lab = await useLab()
    const provider = lab.makeProvider()
    const id = '018f0000-0000-7000-8000-00000000000b'
    const proxmox = createProxmox(parseSettings(lab.emulator.env()))
    await proxmox.upload({
      node: 'pve2',
      storage: 'seeds',
      content: 'iso',
      filename: `deputy-lab-${id}.iso`,
      file: Buffer.from('x'),
    })
    await proxmox.upload({
      node: 'pve2',
      storage: 'seeds',
      content: 'iso',
      filename: 'debian.iso',
      file: Buffer.from('x'),
    })
    await proxmox.close()
    const found = await provider.list(never)
    expect(found.map(machine => machine.id)).toEqual([id])
    await provider.destroy(
      { id, runtime: 'proxmox', jobId: null, details: found[0]!.details },
      AbortSignal.timeout(30_000),
    )
    expect(lab.seeds().map(volume => volume.volid)).toEqual(['seeds:iso/debian.iso'])
    await provider.close()
  })
})

describe.skipIf(!hasCurl)('after the daemon', () => {
  it('was restarted, a running job goes on: no output is lost and none comes twice', async () => {
    const lab = await useLab()
    const callback = { host: '127.0.0.1', port: await freePort() }
    const first = lab.makeProvider({ callback })
    const engine = await lab.open(first)
    const { job_id } = await engine.deputy.submit(
      { task: 'for i in $(seq 1 60); do echo line $i; sleep 0.1; done', runtime: 'proxmox' },
      'test',
    )
    await until(async () => (await engine.deputy.get(job_id)).output_bytes > 40, 'it prints', 30_000)
    await engine.close()
    await first.close()
    const again = await lab.open(lab.makeProvider({ callback }))
    const view = await again.deputy.wait(job_id, { timeoutMs: 45_000, signal: never })
    expect(view.status).toBe('success')
    expect((await again.deputy.result(job_id, {})).output).toBe(
      Array.from({ length: 60 }, (_, i) => `line ${i + 1}\n`).join(''),
    )
    await clean(lab)
  })

  it('was restarted with another heartbeat, a job hears of its end at its own pace', async () => {
    const lab = await useLab()
    lab.usePort(await freePort())
    // The grace of the command is long for a busy computer; that of the second daemon is short, so that it cuts off a
    // machine with a heartbeat of 1 s before this one has sent its next.
    const first = lab.makeProvider({ heartbeatSeconds: 8, graceSeconds: 20 })
    const engine = await lab.open(first)
    // The shell reports on stderr that its sleep was killed, if that is what the signal hits.
    const task = 'exec 2>/dev/null; trap "echo goodbye; exit" TERM; echo ready; while :; do sleep 0.1; done'
    const { job_id } = await engine.deputy.submit({ task, runtime: 'proxmox' }, 'test')
    await until(async () => (await engine.deputy.get(job_id)).output_bytes > 0, 'it runs', 30_000)
    await engine.close()
    await first.close()
    const again = await lab.open(lab.makeProvider({ heartbeatSeconds: 1, graceSeconds: 3 }))
    await again.deputy.cancel(job_id, 'test')
    const view = await again.deputy.wait(job_id, { timeoutMs: 45_000, signal: never })
    expect(view.status).toBe('cancelled')
    expect((await again.deputy.result(job_id, {})).output).toMatch(/^ready\ngoodbye\n/)
    await clean(lab)
  })
})

/** Everything that runs in the guests of this cluster. */
const processesOf = (vmid: number): number[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(name => {
      try {
        return readFileSync(`/proc/${name}/environ`, 'latin1').includes(`/guest-${vmid}-`)
      } catch {
        return false
      }
    })
    .map(Number)

describe.skipIf(!hasCurl)('a machine that falls silent', () => {
  const strict: NonNullable<LabOptions['engine']> = {
    config: config => {
      config.supervision.heartbeat = 3
    },
  }
  const freeze = (lab: Lab): void => {
    for (const pid of processesOf(lab.machines()[0]!.vmid))
      try {
        process.kill(pid, 'SIGSTOP')
      } catch {
        // It ended since it was listed.
      }
  }

  it('is given up, its job says so, and nothing is left', async () => {
    const { lab, engine } = await begin({ engine: strict })
    const { job_id } = await engine.deputy.submit({ task: 'echo a; sleep 300', runtime: 'proxmox' }, 'test')
    await until(async () => (await engine.deputy.get(job_id)).output_bytes > 0, 'it prints', 30_000)
    freeze(lab)
    const view = await engine.deputy.wait(job_id, { timeoutMs: 40_000, signal: never })
    expect(view).toMatchObject({ status: 'failed', error: { code: 'stale' } })
    expect((await engine.deputy.result(job_id, {})).output).toBe('a\n')
    await clean(lab)
  })

  it('is given up when the guest boots anew in the middle, and the command is not run again', async () => {
    const { lab, engine } = await begin({ engine: strict })
    const { job_id } = await engine.deputy.submit({ task: 'echo a; sleep 300', runtime: 'proxmox' }, 'test')
    await until(async () => (await engine.deputy.get(job_id)).output_bytes > 0, 'it prints', 30_000)
    const { node, vmid } = lab.machines()[0]!
    const proxmox = createProxmox(parseSettings(lab.emulator.env()))
    await proxmox.waitTask(await proxmox.post<string>(`/nodes/${node}/qemu/${vmid}/status/reset`))
    await proxmox.close()
    const view = await engine.deputy.wait(job_id, { timeoutMs: 40_000, signal: never })
    expect(view).toMatchObject({ status: 'failed', attempts: 1, error: { code: 'stale' } })
    expect((await engine.deputy.result(job_id, {})).output).toBe('a\n')
    await clean(lab)
  })

  it('is given up also when the daemon was restarted and never heard of it', async () => {
    const { lab, engine } = await begin({ engine: strict })
    const { job_id } = await engine.deputy.submit({ task: 'echo a; sleep 300', runtime: 'proxmox' }, 'test')
    await until(async () => (await engine.deputy.get(job_id)).output_bytes > 0, 'it prints', 30_000)
    freeze(lab)
    await engine.close()
    const heir = await lab.open(lab.makeProvider())
    const view = await heir.deputy.wait(job_id, { timeoutMs: 40_000, signal: never })
    expect(view).toMatchObject({ status: 'failed', error: { code: 'stale' } })
    for (const phase of ['clone', 'boot', 'first_callback', 'run']) expect(view.phases).toHaveProperty(phase)
    await clean(lab)
  })
})

describe('a port that somebody else has', () => {
  it('ends the job before a machine is made, and names the setting', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await new Promise(resolve => other.once('listening', resolve))
    const { port } = other.address() as { port: number }
    const { lab, engine } = await begin({ provider: { callback: { host: '127.0.0.1', port } } })
    const view = await run(engine, { task: 'true', retries: 0 })
    other.close()
    expect(view).toMatchObject({
      status: 'failed',
      error: {
        message: expect.stringContaining(`cannot listen on 127.0.0.1:${port}`),
        hint: expect.stringContaining('CALLBACK_PORT'),
      },
    })
    expect(lab.emulator.requests.some(line => line.includes('/clone'))).toBe(false)
  })
})

describe('a job that is cancelled', () => {
  it.each([
    ['its clone is configured', '/config', undefined],
    ['its seed is uploaded', '/upload', undefined],
    ['its machine is started', '/status/start', { type: 'qmstart', step: 'start', slower: 100 }],
    ['its machine boots', '/status/current', undefined],
  ] as const)('while %s leaves nothing', async (_, call, fault) => {
    const { lab, engine } = await begin({ guests: { bootMs: 600_000 } })
    if (fault) lab.emulator.faults.addTask(fault)
    else if (call !== '/status/current')
      lab.emulator.faults.addRequest({ match: call, delayMs: 1500, times: 1 })
    const { job_id } = await engine.deputy.submit({ task: 'true', runtime: 'proxmox' }, 'test')
    const wanted = (line: string) =>
      line.includes(call) && (call === '/status/current' || !line.startsWith('GET'))
    await until(() => lab.emulator.requests.some(wanted), 'it is there', 20_000)
    await engine.deputy.cancel(job_id, 'test')
    const view = await engine.deputy.wait(job_id, { timeoutMs: 30_000, signal: never })
    expect(view).toMatchObject({ status: 'cancelled', started_at: null })
    await clean(lab)
    await until(async () => (await engine.deputy.machines()).length === 0, 'nothing is on record', 20_000)
  })
})

describe.skipIf(!hasCurl)('while Proxmox VE does not answer', () => {
  it('a job waits for its turn to be tried again, then says who was silent, and what was begun goes later', async () => {
    const { lab, engine } = await begin({
      engine: {
        config: config => {
          config.supervision.cleanup = 0.2
          config.supervision.provisioning = 5
        },
      },
    })
    // It goes away in the middle of making a machine, and for longer than every attempt.
    lab.emulator.faults.addTask({ type: 'qmclone', step: 'copy', slower: 20 })
    const { job_id } = await engine.deputy.submit({ task: 'true', runtime: 'proxmox', retries: 1 }, 'test')
    await until(() => lab.machines().length > 0, 'the clone is being made', 20_000)
    lab.emulator.faults.addRequest({ match: '/api2/', drop: 'before' })
    const view = await engine.deputy.wait(job_id, { timeoutMs: 50_000, signal: never })
    expect(view).toMatchObject({ status: 'failed', attempts: 2, error: { code: 'machine' } })
    expect(view.error?.message).toContain('Proxmox VE did not answer')
    expect(view.error?.hint).toContain('PROXMOX_HOST')
    const reasons = (await engine.deputy.events(job_id, {})).map(event => String(event.data.reason))
    expect(reasons).toContainEqual(expect.stringContaining('not ready in time: it got as far as "clone"'))
    expect((await engine.store.listMachines()).length).toBeGreaterThan(0)
    lab.emulator.faults.clear()
    await clean(lab)
    await until(async () => (await engine.store.listMachines()).length === 0, 'nothing is on record', 40_000)
  })
})

describe.skipIf(!hasCurl)('a pool', () => {
  it('has a machine ready, gives it to a job, and is filled again', async () => {
    const { lab, engine } = await begin({ provider: { poolSize: 1 }, guests: { bootMs: 300 } })
    const waiting = async () => (await engine.store.listMachines()).filter(({ state }) => state === 'ready')
    await until(async () => (await waiting()).length === 1, 'one is ready', 30_000)
    const [ready] = await waiting()
    const view = await run(engine, { task: 'echo warm' })
    expect(view.status).toBe('success')
    expect(view.machine_id).toBe(ready!.id)
    await until(
      async () =>
        (await engine.store.listMachines()).some(
          machine => machine.state === 'ready' && machine.jobId === null,
        ),
      'it is filled again',
      30_000,
    )
    expect(lab.machines().length).toBeGreaterThan(0)
  })

  it('leaves its machines alone for a job that wants more, which gets a cold one', async () => {
    const { engine } = await begin({ provider: { poolSize: 1 } })
    const waiting = async () => (await engine.store.listMachines()).filter(({ state }) => state === 'ready')
    await until(async () => (await waiting()).length === 1, 'one is ready', 30_000)
    const [ready] = await waiting()
    const view = await run(engine, { task: 'echo big', resources: { memory: '4G' } })
    expect(view.status).toBe('success')
    expect(view.machine_id).not.toBe(ready!.id)
    expect((await waiting()).map(({ id }) => id)).toEqual([ready!.id])
  })

  it('has machines of several templates, and gives each job one of its own', async () => {
    const templates = ['agent-template', '9000']
    const { engine } = await begin({ provider: { poolSize: 1, poolTemplates: templates } })
    const waiting = async () => (await engine.store.listMachines()).filter(({ state }) => state === 'ready')
    await until(async () => (await waiting()).length === 2, 'both are ready', 30_000)
    const ready = await waiting()
    for (const vmTemplate of templates) {
      const suits = ready.find(({ details }) => details.templateName === vmTemplate)!
      expect(await run(engine, { task: 'echo warm', vmTemplate })).toMatchObject({
        status: 'success',
        machine_id: suits.id,
      })
    }
  })
})

describe.skipIf(!hasCurl)('a pool whose machines grow old', () => {
  const hasty: NonNullable<LabOptions['engine']> = {
    config: config => {
      config.supervision.cleanup = 0.1
    },
  }

  it('is renewed, and what is replaced is gone with its seed', async () => {
    const { lab, engine } = await begin({ provider: { poolSize: 1, poolAgeSeconds: 2 }, engine: hasty })
    const ready = async () => (await engine.store.listMachines()).filter(({ state }) => state === 'ready')
    await until(async () => (await ready()).length === 1, 'one is ready', 30_000)
    const [old] = await ready()
    await until(async () => (await engine.store.getMachine(old!.id)) === undefined, 'it is replaced', 30_000)
    await until(async () => (await ready()).length >= 1, 'a new one waits', 30_000)
    expect(lab.machines().some(vm => String(vm.config.name).includes(old!.id))).toBe(false)
    expect(lab.seeds().some(seed => seed.volid.includes(old!.id))).toBe(false)
  })

  it('never takes a machine from a job, however often both want one', async () => {
    const { lab, engine } = await begin({ provider: { poolSize: 2, poolAgeSeconds: 0.3 }, engine: hasty })
    for (let round = 0; round < 3; round++) {
      await until(
        async () => (await engine.store.listMachines()).some(({ state }) => state === 'ready'),
        'one is ready',
        30_000,
      )
      const jobs = await Promise.all(
        Array.from({ length: 3 }, (_, i) =>
          engine.deputy.submit({ task: `sleep 0.3; echo job ${i}`, runtime: 'proxmox', retries: 0 }, 'test'),
        ),
      )
      for (const [i, { job_id }] of jobs.entries()) {
        const view = await engine.deputy.wait(job_id, { timeoutMs: 45_000, signal: never })
        expect(view).toMatchObject({ status: 'success', error: null })
        expect((await engine.deputy.result(job_id, {})).output).toBe(`job ${i}\n`)
      }
    }
    await until(async () => {
      const known = (await engine.store.listMachines()).map(machine => `deputy-${machine.id}`)
      return lab.machines().every(vm => known.includes(String(vm.config.name)))
    }, 'every machine is on record')
  })
})

it('tells what is missing, with the command that mends it', async () => {
  const lab = await useLab()
  const provider = lab.makeProvider()
  expect(await provider.check(never)).toMatchObject({ ready: true })
  lab.emulator.state.roles.get('DeputyJobs')!.delete('VM.PowerMgmt')
  lab.emulator.state.vms.get(9000)!.config.ide2 = 'shared:vm-9000-cloudinit,media=cdrom'
  const { ready, checks } = await provider.check(never)
  expect(ready).toBe(false)
  expect(checks.find(check => check.name === 'rights')).toMatchObject({
    status: 'failed',
    message: 'missing: VM.PowerMgmt on /pool/jobs',
    fix: expect.stringContaining('pveum acl modify /pool/jobs'),
  })
  expect(checks.find(check => check.name === 'cloud-init drive')).toMatchObject({
    status: 'warning',
    fix: 'qm set 9000 --delete ide2',
  })
  const said = (name: string) => checks.find(check => check.name === name)
  expect(said('certificate')).toMatchObject({
    status: 'ok',
    message: expect.stringMatching(/^SHA-256 fingerprint (?:[0-9A-F]{2}:){31}[0-9A-F]{2}, valid until 20/),
  })
  expect(said('bridge')).toMatchObject({
    status: 'ok',
    message: expect.stringMatching(/^vmbr0 is on pve\d$/),
  })
  expect(said('clones')).toMatchObject({ status: 'ok' })
  const elsewhere = await lab
    .makeProvider({ network: { firewall: true, privateAddresses: false, bridge: 'vmbr77' } })
    .check(never)
  expect(elsewhere.checks.find(check => check.name === 'bridge')).toMatchObject({
    status: 'failed',
    message: expect.stringContaining('vmbr77 is not among the bridges'),
    fix: expect.stringContaining('PROXMOX_BRIDGE'),
  })
  const { storages } = lab.emulator.state
  for (const [name, storage] of [...storages]) storages.set(name, { ...storage, type: 'lvm' })
  expect((await provider.check(never)).checks.find(check => check.name === 'clones')).toMatchObject({
    status: 'warning',
    message: expect.stringMatching(/^every clone copies [\d.]+ GiB/),
  })
  const absent = await lab.makeProvider({ template: 'nothing' }).check(never)
  expect(absent.checks.find(check => check.name === 'template')).toMatchObject({
    status: 'failed',
    message: expect.stringContaining('"nothing"'),
  })
})
