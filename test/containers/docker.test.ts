import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../src/jobs/ids.ts'
import { processes } from '../chaos/processes.ts'
import { describeWorkspacePatches } from '../integration/providers/patch-contract.ts'
import { exitOf } from '../integration/providers/provider-contract.ts'
import { createTestCli } from '../support/cli.ts'
import { BUSYBOX, importBusybox, TOOLS } from '../support/containers/engines.ts'
import { createHarness, type Harness } from '../support/providers.ts'
import { describeContainerContract } from './container-contract.ts'
import { describeDebian } from './debian.ts'
import { describeImages } from './images.ts'
import { describeVolumes } from './volumes.ts'

const { engine, missing, registries } = await describeContainerContract('docker')
const docker = engine!
const signal = (): AbortSignal => AbortSignal.timeout(60_000)
const LINES = Array.from({ length: 40 }, (_, index) => `line ${index + 1}\n`).join('')
const COUNT = 'for i in $(seq 1 40); do echo line $i; sleep 0.1; done'

const subject = (more: Record<string, unknown> = {}) => ({
  module: 'providers/container/container-provider.js',
  factory: 'createContainerProvider',
  options: { host: engine?.host, image: TOOLS, graceSeconds: 1, ...more },
})

const childOf = (pid: number): number => processes().find(({ parent }) => parent === pid)!.pid

const open = (more?: Record<string, unknown>): Promise<Harness> => createHarness(subject(more))

describeVolumes(engine, missing)
describeImages(engine, registries)
describeWorkspacePatches('container', { skip: missing, subject: subject() })

describe.skipIf(missing !== undefined)('a container', () => {
  let harness: Harness
  beforeAll(async () => {
    harness = await open()
  })
  afterAll(() => harness?.dispose())

  it('has nothing but what the job was given', async () => {
    const script = [
      'id -u; id -g',
      "grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status",
      'ls /sys/class/net | tr "\\n" " "; echo',
      'for d in / /usr /etc /var; do touch $d/x 2>/dev/null && echo "$d is writable"; done',
      'for s in /var/run/docker.sock /run/docker.sock /run/podman/podman.sock; do [ -e $s ] && echo "$s is there"; done',
      'cat /proc/1/comm; touch /tmp/a "$HOME/b"; cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids.max',
      'mount | grep -c " /proc/.*proc " ; (: > /proc/sys/kernel/core_pattern) 2>/dev/null && echo "core_pattern is writable"',
      'dd if=/dev/zero of=/work/big bs=1M count=64 2>&1 | grep -o "No space left"; exit 0',
    ].join('\n')
    const { outcome, sink } = await harness.run({ task: script, resources: { disk: '16M', cpu: 0.5 } })
    expect(exitOf(outcome), sink.text()).toMatchObject({ code: 0 })
    const zero = '0000000000000000'
    const lines = sink.text().trim().split('\n')
    expect(lines.slice(0, 9).map(line => line.replace(/\s+/, ' '))).toEqual([
      ...['1000', '1000', `CapInh: ${zero}`, `CapPrm: ${zero}`, `CapEff: ${zero}`, `CapBnd: ${zero}`],
      ...[`CapAmb: ${zero}`, 'NoNewPrivs: 1', 'Seccomp: 2'],
    ])
    expect(lines[9]!.trim()).toBe('lo')
    expect(lines[10]).toMatch(/init/)
    expect(lines[11]).toBe('512')
    expect(lines.at(-1)).toBe('No space left')
    expect(sink.text()).not.toMatch(/writable|is there/)
    expect(exitOf(outcome).isolation).toEqual(
      expect.arrayContaining([
        'no network',
        'no capabilities',
        'read-only root',
        'kernel shared with the engine',
      ]),
    )
  })

  it('shows no secret and no command to those who inspect it', async () => {
    const secret = `only-on-the-channel-${newId()}`
    const mark = newId()
    const launched = await harness.launch(
      { task: `echo go; sleep 60; : ${mark}`, env: { PLAIN: mark } },
      { secrets: { TOKEN: secret } },
    )
    const hasBegun = (sink: typeof launched.sink): boolean => sink.text().includes('go')
    await launched.sink.until(hasBegun, 'the command has started')
    const inspect = () => docker.api('GET', `/v1.40/containers/deputy-${launched.machine.id}/json`)
    const before = (await inspect()).text
    launched.detach()
    await launched.outcome
    const again = harness.reattach(launched, 0)
    await again.sink.until(hasBegun, 'it is followed again, through an exec')
    const { text } = await inspect()
    const { ExecIDs } = JSON.parse(text) as { ExecIDs: string[] }
    const execs = await Promise.all(ExecIDs.map(id => docker.api('GET', `/v1.40/exec/${id}/json`)))
    const shown = [before, text, ...execs.map(one => one.text)].join('')
    expect(ExecIDs.length).toBeGreaterThan(0)
    expect(shown).not.toContain(secret)
    expect(shown).not.toContain(mark)
    again.stop('cancel')
    await again.outcome
    await harness.provider.destroy(launched.machine, signal())
  })

  it('reports a job that the kernel ended for lack of memory', async () => {
    const { outcome } = await harness.run({
      task: `python3 -c 'x = bytearray(300 * 1024 * 1024)'`,
      resources: { memory: '64M' },
    })
    expect(exitOf(outcome)).toMatchObject({ limitsHit: [expect.stringContaining('memory')] })
  })

  it('keeps its job through kill -9 of the engine, with exact output', async () => {
    const launched = await harness.launch({ task: COUNT })
    await launched.sink.until(sink => sink.text().includes('line 3\n'), 'three lines')
    await docker.kill()
    await docker.start()
    expect(exitOf(await launched.outcome).code).toBe(0)
    expect(launched.sink.text()).toBe(LINES)
    await harness.provider.destroy(launched.machine, signal())
  })

  it('that was started ahead serves its job after kill -9 of the engine', async () => {
    const machine = { id: newId(), runtime: 'container', jobId: null, details: {} }
    const remember = async (details: object): Promise<void> => void Object.assign(machine.details, details)
    await harness.provider.create({ machine, kind: TOOLS, remember, signal: signal() })
    await docker.kill()
    await docker.start()
    const launched = await harness.launch({ task: 'echo hello' }, undefined, machine)
    expect(exitOf(await launched.outcome).code).toBe(0)
    expect(launched.sink.text()).toBe('hello\n')
    await harness.provider.destroy(machine, signal())
  })

  it('is asked by an exec when its first shell no longer answers', async () => {
    const launched = await harness.launch({ task: COUNT })
    await launched.sink.until(sink => sink.text().includes('line 3\n'), 'three lines')
    const { text } = await docker.api('GET', `/v1.40/containers/deputy-${launched.machine.id}/json`)
    const { State, ExecIDs } = JSON.parse(text) as { State: { Pid: number }; ExecIDs: string[] | null }
    expect(ExecIDs).toBeNull()
    process.kill(childOf(childOf(State.Pid)), 'SIGKILL')
    expect(exitOf(await launched.outcome).code).toBe(0)
    expect(launched.sink.text()).toBe(LINES)
    await harness.provider.destroy(launched.machine, signal())
  }, 120_000)

  it.each(['stop?t=0', 'kill'])(
    'that others end with %s loses its job, which is not run again',
    async how => {
      const launched = await harness.launch({ task: 'echo on; sleep 60' })
      await launched.sink.until(sink => sink.text().includes('on'), 'it runs')
      await docker.api('POST', `/v1.40/containers/deputy-${launched.machine.id}/${how}`)
      expect(await launched.outcome).toMatchObject({ kind: 'lost' })
      await docker.api('DELETE', `/v1.40/containers/deputy-${launched.machine.id}?force=1`)
      const again = harness.reattach(launched, launched.sink.position)
      expect(await again.outcome).toMatchObject({ kind: 'lost' })
      await harness.provider.destroy(launched.machine, signal())
    },
  )

  it('of the documented Dockerfile has its own agent, wherever this computer has one', async () => {
    const context = join(docker.directory, 'agent')
    await mkdir(context)
    const documented = /```dockerfile\n(FROM .*?)```/s.exec(readFileSync('docs/containers.md', 'utf8'))?.[1]
    writeFileSync(join(context, 'Dockerfile'), documented!.replace(/^FROM .*/, `FROM ${TOOLS}`))
    writeFileSync(join(context, 'claude'), '#!/bin/sh\necho "agent $1 as $(id -u)"\n', { mode: 0o755 })
    const [program = '', ...args] = docker.cli.argv
    const image = 'localhost/deputy-test/agent:1'
    execFileSync(program, [...args, 'build', '-q', '--network', 'none', '-t', image, context], {
      env: docker.cli.env,
    })
    const { sink } = await harness.run(
      { task: 'x', image },
      { argv: ['/opt/agents/bin/claude', 'works'], programs: ['/opt/agents'] },
    )
    expect(sink.text()).toBe('agent works as 1000\n')
  })

  it('cannot have what the engine does not have', async () => {
    const gpu = harness.run({ task: 'true', gpus: 'all' })
    await expect(gpu).rejects.toMatchObject({ code: 'unsupported', message: expect.stringContaining('GPUs') })
    const other = await open({ runtimeClass: 'none-such' })
    expect((await other.provider.check(signal())).checks).toContainEqual(
      expect.objectContaining({
        name: 'runtimes',
        status: 'failed',
        fix: expect.stringContaining('none-such'),
      }),
    )
    await expect(other.run({ task: 'true' })).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringContaining('none-such'),
    })
    await other.dispose()
  })

  it('of somebody else is neither listed nor removed', async () => {
    const id = newId()
    const body = { Image: TOOLS, Cmd: ['true'], Labels: { 'deputy.owner': 'other', 'deputy.machine': id } }
    expect((await docker.api('POST', `/v1.40/containers/create?name=deputy-${id}`, body)).status).toBe(201)
    const listed = await harness.provider.list(signal())
    expect(listed.map(machine => machine.id)).not.toContain(id)
    const machine = { id, runtime: 'container', jobId: null, details: { engine: docker.host } }
    await expect(harness.provider.destroy(machine, signal())).rejects.toMatchObject({ code: 'conflict' })
    expect((await docker.api('DELETE', `/v1.40/containers/deputy-${id}`)).status).toBe(204)
  })

  it('runs a script in sh where the image has no bash', async () => {
    await importBusybox(docker)
    const { outcome, sink } = await harness.run({
      task: 'cat in.txt; pwd; echo x > out.txt',
      image: BUSYBOX,
      files: [{ path: 'in.txt', text: 'given\n' }],
      artifacts: ['*.txt'],
    })
    expect(sink.text()).toBe('given\n/work\n')
    const exit = exitOf(outcome)
    expect(exit.artifacts.map(({ path }) => path)).toEqual(['in.txt', 'out.txt'])
    expect(exit.image).toMatchObject({ name: BUSYBOX, digest: expect.stringMatching(/^sha256:/) })
  })

  it('is started ahead for the images in container.warm, and the next job takes it', async () => {
    await importBusybox(docker)
    const warm = createTestCli({ DOCKER_HOST: docker.host })
    try {
      await mkdir(join(warm.home, 'config'), { recursive: true })
      writeFileSync(join(warm.home, 'config/config.yaml'), `container:\n  warm: ['${BUSYBOX}']\n`)
      type Machine = { machine_id: string; state: string }
      const machines = () => warm.json<Machine[]>(['machines', '--json'])
      let ready: Machine | undefined
      for (const end = performance.now() + 45_000; ready === undefined && performance.now() < end; )
        ready = (await machines()).find(({ state }) => state === 'ready')
      const job = await warm.json<Machine>(['run', '--json', '--image', BUSYBOX, '--', 'true'])
      expect(job).toMatchObject({ status: 'success', machine_id: ready?.machine_id })
    } finally {
      await warm.close()
    }
  }, 120_000)
})

describeDebian(engine)
