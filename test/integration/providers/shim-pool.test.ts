import { randomUUID } from 'node:crypto'
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { newId } from '../../../src/jobs/ids.ts'
import { connectShim, type ShimEvent, type ShimLink } from '../../../src/providers/local/shim-link.ts'
import { createSandboxProvider } from '../../../src/providers/sandbox/sandbox-provider.ts'
import type { StartRequest } from '../../../src/runner/client.ts'
import { createHarness } from '../../support/providers.ts'
import { leftovers, SANDBOXES } from '../../support/sandboxes.ts'
import { askShims } from '../../support/shims.ts'
import { exitOf, processesWith, waitFor } from './provider-contract.ts'

const { subject } = SANDBOXES.find(variant => variant.skip === undefined)!
const PATIENCE = { timeout: 30_000, interval: 50 }
const secondIn = (workspace: string, dir: string): StartRequest => ({
  ...{ kind: 'start', run: 'second', workspace, from: 0, timeoutSeconds: 60, graceTenths: 10 },
  ...{ keepHead: 1000, keepTail: 1000, context: '', env: [], argv: ['touch', 'second'] },
  shim: {
    ...{ dir, secrets: {}, format: 'text', network: 'none', programs: [], timeoutSeconds: 60 },
    ...{ lifecycle: 'ephemeral', continues: false, inputs: [], artifacts: [] },
    ...{ patchBase: null, wantsPatch: false, givenFiles: [] },
    limits: { memory: 2 ** 28, disk: 2 ** 28, cpu: 1, processes: 64 },
    keep: { head: 1000, tail: 1000, artifactFiles: 1, artifactBytes: 1000, patchBytes: 1000 },
  },
})
const shims = (stateDir: string) => processesWith(stateDir).filter(line => line.includes('shim.js'))

describe('shims', () => {
  it('are reused: many jobs in a row start no more of them', async () => {
    const harness = await createHarness(subject)
    for (let index = 0; index < 24; index++) await harness.run({ task: 'true' })
    const ids = readdirSync(join(harness.stateDir, 'sandbox/shims')).filter(name => name.endsWith('.sock'))
    // The one at work; without reuse there would be one for each job.
    expect(ids).toHaveLength(1)
    await harness.dispose()
    await waitFor(() => shims(harness.stateDir).length === 0, 'free shims end with the runtime')
    expect(leftovers(harness)).toEqual([])
  })

  it('give each job an empty disk, and keep none that a job has filled', async () => {
    const harness = await createHarness({ ...subject, options: { ...subject.options, spare: 1 } })
    const disks = () =>
      shims(harness.stateDir).map(line => mountsOf(line).match(/ \/sys\/kernel\/\d+ /g)?.length ?? 0)
    const look = 'find /work /tmp /home/job /dev/shm; stat -c %a /home/job; '
    const leftBehind = ['chmod 755 /home/job', 'touch /tmp/file', 'mkdir -p /work/a/b']
    for (const leave of [...leftBehind, ...leftBehind]) {
      const { sink } = await harness.run({ task: look + leave })
      expect(sink.text()).toBe('/work\n/tmp\n/home/job\n/dev/shm\n700\n')
    }
    await waitFor(() => disks().every(count => count <= 1), 'each has the disk of its machine only')
    await harness.dispose()
  })

  it('leave no files: the next daemon finishes an interrupted clean-up', async () => {
    const harness = await createHarness(subject)
    const half = join(harness.stateDir, 'sandbox/shims/0badcafe.d')
    mkdirSync(half)
    writeFileSync(join(half, 'pipe-0'), '')
    await harness.restart()
    await waitFor(() => !existsSync(half), 'the directory of the dead shim is removed')
    await harness.dispose()
  })

  it('stop when idle, except the spare ones', async () => {
    const options = { ...subject.options, spare: 1, idleSeconds: 2 }
    const harness = await createHarness({ ...subject, options })
    const burst = await Promise.all(
      Array.from({ length: 20 }, () => harness.launch({ task: 'echo on; sleep 60' })),
    )
    for (const { sink } of burst) await sink.until(({ text }) => text().includes('on'), 'it runs')
    expect(shims(harness.stateDir).length).toBeGreaterThanOrEqual(2)
    for (const job of burst) job.stop('cancel')
    await Promise.all(burst.map(({ outcome }) => outcome))
    for (const { machine } of burst) await harness.provider.destroy(machine, AbortSignal.timeout(30_000))
    await waitFor(() => shims(harness.stateDir).length === 1, 'only the spare one is left')
    const { outcome, sink } = await harness.run({ task: 'echo fine' })
    expect(exitOf(outcome).code).toBe(0)
    expect(sink.text()).toBe('fine\n')
    await harness.dispose()
  })

  it('keep no secret of a job that has ended', async () => {
    const options = { ...subject.options, spare: 4, idleSeconds: 3600 }
    const harness = await createHarness({ ...subject, options })
    const secret = `in-memory-${randomUUID()}`
    const holding = () => shims(harness.stateDir).filter(line => memoryOf(line).includes(secret))
    const job = await harness.launch({ task: 'echo on; sleep 60' }, { secrets: { TOKEN: secret } })
    await job.sink.until(({ text }) => text().includes('on'), 'it runs')
    expect(holding()).toHaveLength(1)
    job.stop('cancel')
    await job.outcome
    await harness.provider.destroy(job.machine, AbortSignal.timeout(30_000))
    await waitFor(() => holding().length === 0, 'the secret is gone')
    await harness.dispose()
  })

  it('stay with their job when the runtime is closed, and end when their home is gone', async () => {
    const harness = await createHarness(subject)
    const launched = await harness.launch({ task: 'echo on; sleep 300' })
    await launched.sink.until(sink => sink.text().includes('on'), 'it runs')
    launched.detach()
    await launched.outcome
    await harness.provider.close()
    expect(shims(harness.stateDir).length).toBeGreaterThan(0)
    rmSync(harness.stateDir, { recursive: true, force: true })
    await waitFor(() => shims(harness.stateDir).length === 0, 'they end')
    expect(leftovers(harness)).toEqual([])
  })

  it('work in a home with a very long path', async () => {
    const base = mkdtempSync(join(tmpdir(), `deputy-${'long-'.repeat(20)}`))
    const before = process.env.TMPDIR
    process.env.TMPDIR = base
    try {
      const harness = await createHarness(subject)
      expect(harness.stateDir.length).toBeGreaterThan(108)
      const { outcome, sink } = await harness.run({ task: 'echo fine', network: ['example.invalid'] })
      expect(exitOf(outcome).code).toBe(0)
      expect(sink.text()).toBe('fine\n')
      await harness.dispose()
    } finally {
      if (before === undefined) delete process.env.TMPDIR
      else process.env.TMPDIR = before
      rmSync(base, { recursive: true, force: true })
    }
  })

  it('keep the output when the daemon stores it slowly', async () => {
    const harness = await createHarness(subject)
    const launched = await harness.launch({ task: 'for i in $(seq 1 2000); do echo line $i; done' })
    const write = launched.sink.write
    launched.sink.write = async batch => {
      await new Promise(resolve => setTimeout(resolve, 100))
      await write(batch)
    }
    expect(exitOf(await launched.outcome).code).toBe(0)
    expect(launched.sink.text()).toBe(
      Array.from({ length: 2000 }, (_, index) => `line ${index + 1}\n`).join(''),
    )
    await harness.dispose()
  })
})

describe('a job in a shim', () => {
  const shimOf = async (stateDir: string, machineId: string): Promise<ShimLink> => {
    const directory = join(stateDir, 'sandbox/shims')
    const found = (await askShims(directory)).find(({ machines }) => machines.has(machineId))
    if (found === undefined) throw new Error(`no shim holds ${machineId}`)
    return connectShim(join(directory, `${found.id}.sock`))
  }

  it('does not share its machine: a second job is refused while it runs', async () => {
    const harness = await createHarness(subject)
    const launched = await harness.launch({ task: 'echo on; read -r _ </dev/null; sleep 300' })
    await launched.sink.until(sink => sink.text().includes('on'), 'it runs')
    const link = await shimOf(harness.stateDir, launched.machine.id)
    const dir = join(harness.stateDir, 'second')
    mkdirSync(dir)
    const answer = new Promise<ShimEvent>(resolve =>
      link.listen(event => {
        if ('run' in event && event.run === 'second') resolve(event)
      }),
    )
    link.send(secondIn(launched.machine.id, dir))
    expect(await answer).toMatchObject({ kind: 'refused', error: { code: 'conflict' } })
    expect(readdirSync(dir)).toEqual([])
    link.disconnect()
    await harness.provider.destroy(launched.machine, AbortSignal.timeout(30_000))
    await harness.dispose()
  })

  it('has timed out, also when it is cancelled before it has ended', async () => {
    const harness = await createHarness({ ...subject, options: { ...subject.options, graceSeconds: 5 } })
    const task = 'trap "echo term" TERM; echo on; while :; do sleep 0.1; done'
    const launched = await harness.launch({ task, timeout: 2 })
    await launched.sink.until(sink => sink.text().includes('term'), 'its time is over')
    launched.stop('cancel')
    expect(exitOf(await launched.outcome)).toMatchObject({ stopped: 'timeout' })
    await harness.dispose()
  })

  it('is known to the next daemon, which starts nothing beside it', async () => {
    const harness = await createHarness(subject)
    const { machine, ...launched } = await harness.launch({
      task: 'echo on; sleep 300',
      lifecycle: 'persistent',
    })
    await launched.sink.until(sink => sink.text().includes('on'), 'it runs')
    launched.detach()
    await launched.outcome
    await harness.restart()
    const second = await harness.launch({ task: 'echo second', machine: machine.id }, {}, machine)
    expect(await second.outcome).toMatchObject({
      kind: 'not-started',
      error: {
        code: 'conflict',
        message: `The kept machine ${machine.id} is busy with the job ${launched.job.id}.`,
      },
    })
    await harness.dispose()
  })

  it('is not started when another process has marked it as started', async () => {
    const harness = await createHarness(subject)
    const job = { id: newId() }
    const machine = { id: newId(), runtime: 'sandbox', jobId: job.id, details: {} }
    const dir = join(harness.stateDir, 'sandbox/runs', machine.id, job.id)
    mkdirSync(dir, { recursive: true })
    writeFileSync(join(dir, 'started'), '1')
    const { outcome, sink } = await harness.launch({ task: 'echo ran' }, {}, machine, job)
    expect(await outcome).toMatchObject({ kind: 'lost', error: { code: 'conflict' } })
    expect(sink.text()).toBe('')
    await harness.provider.destroy(machine, AbortSignal.timeout(30_000))
    await harness.dispose()
  })

  it('is lost, without an internal error, when a power cut left its result empty', async () => {
    const harness = await createHarness(subject)
    const launched = await harness.launch({ task: 'echo on; sleep 0.2' })
    await launched.sink.until(sink => sink.text().includes('on'), 'it runs')
    launched.detach()
    await launched.outcome
    const file = join(harness.stateDir, 'sandbox/runs', launched.machine.id, launched.job.id, 'exit.json')
    await waitFor(() => existsSync(file), 'the result is written')
    await vi.waitFor(async () => {
      const links = await askShims(join(harness.stateDir, 'sandbox/shims'))
      expect(links.flatMap(({ machines }) => [...machines])).toEqual([])
    }, PATIENCE)
    truncateSync(file)
    await harness.restart()
    expect(await harness.reattach(launched, 0).outcome).toMatchObject({ kind: 'lost' })
    await harness.dispose()
  })
})

describe('a job that ends while no daemon runs', () => {
  it('keeps the times of its output, and has its files when there is room for them', async () => {
    let refusals = 2
    const harness = await createHarness((stateDir, blobs) =>
      createSandboxProvider({
        ...subject.options,
        stateDir,
        blobs: {
          ...blobs,
          adopt: async (...given) => {
            if (refusals-- > 0) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' })
            return blobs.adopt(...given)
          },
        },
      }),
    )
    const launched = await harness.launch({
      task: 'echo on; sleep 1; echo ::progress:: half; head -c 1000 /dev/zero >made; exit 3',
      artifacts: ['made'],
    })
    await launched.sink.until(sink => sink.text().includes('on'), 'it runs')
    launched.detach()
    await launched.outcome
    const file = join(harness.stateDir, 'sandbox/runs', launched.machine.id, launched.job.id, 'exit.json')
    await waitFor(() => existsSync(file), 'the result is written')
    await harness.restart()
    const restarted = Date.now()
    const again = harness.reattach(launched, 0)
    expect(exitOf(await again.outcome)).toMatchObject({
      code: 3,
      artifacts: [{ path: 'made', size: 1000 }],
      skippedArtifacts: [],
    })
    expect(again.sink.chunks.every(({ at }) => at < restarted)).toBe(true)
    expect(again.sink.text()).toBe('on\n::progress:: half\n')
    expect(again.sink.progress).toEqual(['half'])
    expect(refusals).toBe(-1)
    await harness.dispose()
  })
})

describe('a job that is held by a shim of an older version', () => {
  it('is lost, and says why', async () => {
    const harness = await createHarness(subject)
    const launched = await harness.launch({ task: 'echo on' })
    await launched.outcome
    const file = join(harness.stateDir, 'sandbox/runs', launched.machine.id, launched.job.id, 'exit.json')
    await waitFor(() => existsSync(file), 'the result is written')
    rmSync(file)
    const older = createServer(socket => {
      socket.on('error', () => {})
      socket.write('{"type":"hello","version":1,"id":"0badcafe"}\n')
    })
    const path = join(harness.stateDir, 'sandbox/shims/0badcafe.sock')
    await new Promise<void>(resolve => older.listen(path, resolve))
    await harness.restart()
    const { outcome } = harness.reattach(launched, 0)
    expect(await outcome).toMatchObject({ kind: 'lost', error: { code: 'unsupported' } })
    expect(await outcome).toMatchObject({
      error: { message: expect.stringContaining('It was started by an older Deputy') },
    })
    older.close()
    await harness.dispose()
  })
})

/** The mounts that a process sees; what has ended sees none. */
const mountsOf = (process: string): string => {
  try {
    return readFileSync(`/proc/${/\d+/.exec(process)?.[0]}/mountinfo`, 'utf8')
  } catch {
    return ''
  }
}

/** All that a process could write to, as text; what has ended has nothing. */
const memoryOf = (process: string): string => {
  const pid = /\d+/.exec(process)?.[0] ?? ''
  let text = ''
  try {
    const memory = openSync(`/proc/${pid}/mem`, 'r')
    for (const [, from, to] of readFileSync(`/proc/${pid}/maps`, 'utf8').matchAll(/^(\w+)-(\w+) rw/gm)) {
      const [start, size] = [
        Number.parseInt(from!, 16),
        Number.parseInt(to!, 16) - Number.parseInt(from!, 16),
      ]
      const page = Buffer.alloc(size)
      try {
        text += page.subarray(0, readSync(memory, page, 0, size, start)).toString('latin1')
      } catch {
        // A mapping that is not backed by memory.
      }
    }
    closeSync(memory)
  } catch {}
  return text
}
