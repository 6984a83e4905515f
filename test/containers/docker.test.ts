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
import { describeIsolation } from './isolation.ts'
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
describeIsolation(engine, missing)
describeImages(engine, registries)
describeWorkspacePatches('container', { skip: missing, subject: subject() })

describe.skipIf(missing !== undefined)('a container', () => {
  let harness: Harness
  beforeAll(async () => {
    harness = await open()
  })
  afterAll(() => harness?.dispose())

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
