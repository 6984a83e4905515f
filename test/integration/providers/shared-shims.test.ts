import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { compiledFile } from '../../../src/files/compiled-file.ts'
import { newId } from '../../../src/jobs/ids.ts'
import { parseManifest } from '../../../src/jobs/manifest.ts'
import { createHostProvider } from '../../../src/providers/host/host-provider.ts'
import type { ShimConfig } from '../../../src/providers/local/shim-config.ts'
import { connectShim, type ShimLink } from '../../../src/providers/local/shim-link.ts'
import { createHarness, type Harness, type Launched } from '../../support/providers.ts'
import { leftovers, SANDBOXES } from '../../support/sandboxes.ts'
import { askShims } from '../../support/shims.ts'
import { exitOf, processesWith, waitFor } from './provider-contract.ts'

const { subject } = SANDBOXES.find(variant => variant.skip === undefined)!
const PATIENCE = { timeout: 30_000, interval: 50 }
const TASK = 'echo on; sleep 300'

const shimsDir = ({ stateDir }: Harness): string => join(stateDir, 'sandbox/shims')
const shims = (stateDir: string) => processesWith(stateDir).filter(line => line.includes('shim.js'))

const launchMany = async (harness: Harness, count: number): Promise<Launched[]> => {
  const jobs = await Promise.all(Array.from({ length: count }, () => harness.launch({ task: TASK })))
  for (const { sink } of jobs) await sink.until(({ text }) => text().includes('on'), 'it runs')
  return jobs
}

const holderOf = (links: readonly ShimLink[], { machine }: Pick<Launched, 'machine'>): ShimLink => {
  const link = links.find(({ machines }) => machines.has(machine.id))
  if (link === undefined) throw new Error(`no shim holds ${machine.id}`)
  return link
}

describe('a shim', () => {
  it('holds up to 16 machines, and the next one starts before it is full', async () => {
    const harness = await createHarness(subject)
    const jobs = await launchMany(harness, 20)
    const links = await askShims(shimsDir(harness))
    expect(links.length).toBeLessThanOrEqual(3)
    expect(Math.max(...links.map(({ machines }) => machines.size))).toBeLessThanOrEqual(16)
    expect(new Set(jobs.map(job => holderOf(links, job).id)).size).toBe(2)
    for (const job of jobs) job.stop('cancel')
    const exits = (await Promise.all(jobs.map(({ outcome }) => outcome))).map(exitOf)
    const users = exits.flatMap(({ isolation }) => isolation.filter(line => line.startsWith('user id')))
    // Only a root daemon has user ids to give.
    expect(new Set(users).size).toBe(process.getuid?.() === 0 ? 20 : 0)
    await harness.dispose()
  })

  it('that is killed loses its own jobs only, tells each of them, and leaves nothing', async () => {
    const harness = await createHarness(subject)
    const jobs = await launchMany(harness, 18)
    const links = await askShims(shimsDir(harness))
    const victim = holderOf(links, jobs[0]!)
    const [dead, living] = [true, false].map(isDead =>
      jobs.filter(job => (holderOf(links, job).id === victim.id) === isDead),
    ) as [Launched[], Launched[]]
    expect(dead.length).toBeGreaterThan(1)
    expect(living.length).toBeGreaterThan(0)
    process.kill(victim.pid, 'SIGKILL')
    for (const { outcome } of dead) expect(await outcome).toMatchObject({ kind: 'lost' })
    for (const job of living) job.stop('cancel')
    for (const { outcome } of living) expect(exitOf(await outcome)).toMatchObject({ stopped: 'cancel' })
    await waitFor(() => !existsSync(join(shimsDir(harness), `${victim.id}.d`)), 'its directory is gone')
    await vi.waitFor(() => expect(leftovers(harness)).toEqual([]), PATIENCE)
    await harness.dispose()
  })

  it('that is retiring and is killed leaves nothing of the machines that it held', async () => {
    const harness = await createHarness(subject)
    const jobs = await launchMany(harness, 3)
    const victim = holderOf(await askShims(shimsDir(harness)), jobs[0]!)
    const link = await connectShim(join(shimsDir(harness), `${victim.id}.sock`))
    const retired = new Promise(resolve => link.listen(({ kind }) => kind === 'leaving' && resolve(kind)))
    link.send({ kind: 'retire' })
    await retired
    // The daemon knows, too: it has started another.
    await waitFor(() => shims(harness.stateDir).length === 2, 'the next shim starts')
    process.kill(victim.pid, 'SIGKILL')
    for (const { outcome } of jobs) expect(await outcome).toMatchObject({ kind: 'lost' })
    await waitFor(
      () => !readdirSync(shimsDir(harness)).some(name => name.startsWith(victim.id)),
      'its files are gone',
    )
    await vi.waitFor(() => expect(leftovers(harness)).toEqual([]), PATIENCE)
    await harness.dispose()
  })

  it('keeps its machines through a restart of the daemon, which finds each of them', async () => {
    const harness = await createHarness(subject)
    const jobs = await launchMany(harness, 5)
    for (const job of jobs) job.detach()
    await Promise.all(jobs.map(({ outcome }) => outcome))
    await harness.restart()
    const again = jobs.map(job => harness.reattach(job, 0))
    for (const { sink } of again) await sink.until(({ text }) => text().includes('on'), 'it is followed')
    for (const job of again) job.stop('cancel')
    for (const { outcome } of again) expect(exitOf(await outcome)).toMatchObject({ stopped: 'cancel' })
    await harness.dispose()
  })

  it('that holds a job with secrets holds no other, and leaves after it', async () => {
    const harness = await createHarness(subject)
    const [before] = (await launchMany(harness, 1)) as [Launched]
    const secret = await harness.launch({ task: TASK }, { secrets: { TOKEN: 'not told' } })
    await secret.sink.until(({ text }) => text().includes('on'), 'it runs')
    const [after] = (await launchMany(harness, 1)) as [Launched]
    const links = await askShims(shimsDir(harness))
    const alone = holderOf(links, secret)
    expect([...alone.machines.keys()]).toEqual([secret.machine.id])
    expect(alone.retiring).toBe(true)
    expect(holderOf(links, before).id).toBe(holderOf(links, after).id)
    secret.stop('cancel')
    await secret.outcome
    await waitFor(
      () => !shims(harness.stateDir).some(line => line.startsWith(`${alone.pid} `)),
      'it has left',
    )
    await harness.dispose()
  })
})

describe('a shim of another version', () => {
  it('keeps its job, gets no other, and leaves after it', async () => {
    const machine = { id: newId(), runtime: 'host', jobId: newId(), details: {} }
    let older: ShimLink | undefined
    const harness = await createHarness(async (stateDir, blobs) => {
      older ??= await startOlder(
        join(stateDir, 'host/shims'),
        join(stateDir, 'host/runs', machine.id),
        machine,
      )
      return createHostProvider({ stateDir, blobs, access: { allowed: true }, graceSeconds: 1 })
    })
    const { pid } = older!
    const { outcome, sink } = await harness.run({ task: 'echo $PPID; echo new' })
    expect(exitOf(outcome).code).toBe(0)
    expect(sink.text()).toContain('new')
    const links = await askShims(join(harness.stateDir, 'host/shims'))
    expect([...holderOf(links, { machine }).machines]).toEqual([
      [machine.id, `${machine.id}.${machine.jobId}`],
    ])
    expect(links.find(link => link.pid === pid)).toMatchObject({ retiring: true })
    const job = { ...(await harness.launch({ task: 'true' })).job, id: machine.jobId }
    const held = harness.reattach({ job, machine, manifest: parseManifest({ task: 'x' }) }, 0)
    await held.sink.until(({ text }) => text().includes('old'), 'it is followed')
    held.stop('cancel')
    expect(exitOf(await held.outcome)).toMatchObject({ stopped: 'cancel' })
    await waitFor(() => !shims(harness.stateDir).some(line => line.startsWith(`${pid} `)), 'it has left')
    await harness.dispose()
  })
})

/** Starts a shim of another build with one job in it. */
const startOlder = async (
  dir: string,
  runs: string,
  { id, jobId }: { id: string; jobId: string },
): Promise<ShimLink> => {
  const config: ShimConfig = {
    ...{ id: '0badcafe', dir, runtime: 'host', backend: { type: 'none' }, cgroup: null, cgroupPrefix: '' },
    ...{ uids: null, maxMachines: 16, spareMachines: 0, maxJobs: 10, idleSeconds: 3600, build: 'older' },
    warm: { memory: 0, disk: 0, cpu: 0, processes: 0 },
  }
  mkdirSync(dir, { recursive: true })
  mkdirSync(join(runs, jobId), { recursive: true })
  const child = spawn(process.execPath, [compiledFile('shim/shim.js'), JSON.stringify(config)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await new Promise(resolve => child.stdout.once('data', resolve))
  const link = await connectShim(join(dir, '0badcafe.sock'))
  const started = new Promise(resolve => link.listen(({ kind }) => kind === 'started' && resolve(kind)))
  link.send({
    ...{ kind: 'start', run: `${id}.${jobId}`, workspace: id, from: 0, timeoutSeconds: 60, graceTenths: 10 },
    ...{ keepHead: 1000, keepTail: 1000, context: '', env: [], argv: ['sh', '-c', 'echo old; sleep 300'] },
    shim: {
      ...{ dir: join(runs, jobId), secrets: {}, format: 'text', network: 'full', programs: [] },
      ...{ timeoutSeconds: 60, lifecycle: 'ephemeral', continues: false, inputs: [], artifacts: [] },
      ...{ patchBase: null, wantsPatch: false, givenFiles: [] },
      limits: { memory: 0, disk: 0, cpu: 0, processes: 0 },
      keep: { head: 1000, tail: 1000, artifactFiles: 1, artifactBytes: 1000, patchBytes: 1000 },
    },
  })
  await started
  link.disconnect()
  return link
}
