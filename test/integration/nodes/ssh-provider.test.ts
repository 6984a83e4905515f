import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { pack } from 'tar-stream'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { parseManifest } from '../../../src/jobs/manifest.ts'
import type { Cluster } from '../../../src/nodes/cluster.ts'
import { failureError } from '../../../src/nodes/ssh/ssh-errors.ts'
import type { Ssh } from '../../../src/nodes/ssh/ssh-session.ts'
import type { Exit, Outcome } from '../../../src/ports.ts'
import { createSshProvider } from '../../../src/providers/ssh/ssh-provider.ts'
import { followOn, hostOf, labCluster, runOn } from '../../support/labcluster.ts'
import { createHarness, type Harness } from '../../support/providers.ts'
import { createSshLab, missingForSshLab, type SshLab, waitFor } from '../../support/sshlab.ts'

const missing = missingForSshLab()
const signal = new AbortController().signal

describe.skipIf(missing !== undefined)(`a job on a node${missing ? ` (skipped: ${missing})` : ''}`, () => {
  let lab: SshLab
  const open: { dispose(): void | Promise<void> }[] = []
  beforeAll(async () => {
    lab = await createSshLab({ nodes: 2 })
  })
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.dispose()
  })
  afterAll(() => lab?.close())

  const clusterOf = (config: Parameters<typeof labCluster>[1] = {}): Cluster => {
    const cluster = labCluster(lab, config)
    open.push(cluster)
    return cluster
  }
  const nodes = (more: Record<string, object> = {}) =>
    lab.nodes.map(({ id, address, port }) => ({
      ...{ id, host: address, port, user: lab.user, identity: lab.identity },
      ...more[id],
    }))
  const harnessOf = async (cluster: Cluster): Promise<Harness> => {
    const harness = await createHarness((stateDir, blobs) =>
      createSshProvider({ cluster, blobs, routed: true, keyFile: join(stateDir, 'memo.key') }),
    )
    open.push(harness)
    return harness
  }
  const exitOf = (outcome: Outcome): Exit => {
    if (outcome.kind !== 'exit') throw new Error(`expected an exit, got ${JSON.stringify(outcome)}`)
    return outcome.exit
  }

  it('is not given up when the login is refused for a while after a restart', async () => {
    const first = labCluster(lab)
    let up = false
    const leaving = new AbortController()
    const id = `held${process.pid}`
    const command = 'echo up; while [ ! -e go ]; do sleep 0.05; done; exit 6'
    const running = runOn(
      first,
      'n1',
      { id, command },
      {
        signal: leaving.signal,
        onOutput: () => {
          up = true
        },
      },
    ).catch(() => undefined)
    await waitFor(() => up)
    leaving.abort()
    first.dispose()
    await running

    const key = join(lab.directory, 'changing_key')
    copyFileSync(`${lab.directory}/n1/host_key`, key)
    const second = clusterOf({ nodes: nodes({ n1: { identity: key } }) })
    let refused = 0
    const spy: Cluster = {
      ...second,
      failed: (...told) => {
        refused++
        second.failed(...told)
      },
    }
    const held = followOn(hostOf(spy, 'n1'), id, { from: 3 })
    await waitFor(() => refused > 1)
    copyFileSync(lab.identity, key)
    lab.nodes[0]!.inside(`touch ${lab.nodes[0]!.home}/.cache/deputy/test/work/${id}/go`)
    expect(await held).toMatchObject({ kind: 'exit', code: 6 })
  })

  it('returns its artifacts over a connection that fails after its end', async () => {
    const real = clusterOf()
    let broken = 0
    const cluster: Cluster = {
      ...real,
      target: async (node, waiting) => {
        const target = await real.target(node, waiting)
        if (broken-- > 0) throw failureError(target, 'lost')
        return target
      },
    }
    const harness = await harnessOf(cluster)
    const launched = await harness.launch({
      task: 'echo made > made.txt; echo up; while [ ! -e "$HOME/go" ]; do sleep 0.05; done; exit 3',
      network: 'full',
      requires: { node: 'n1' },
      artifacts: ['*.txt'],
    })
    await launched.sink.until(sink => sink.text().includes('up'), 'it has started')
    broken = 3
    lab.nodes[0]!.inside(`touch ${lab.nodes[0]!.home}/go`)
    const exit = exitOf(await launched.outcome)
    expect(exit).toMatchObject({ code: 3, skippedArtifacts: [] })
    expect(exit.artifacts.map(({ path }) => path)).toEqual(['made.txt'])
  })

  it('is stopped when the request comes before the start', async () => {
    const real = clusterOf()
    let stop: () => void = () => undefined
    const run: Ssh['run'] = async request => {
      if (request.script.includes('\nrequest start ')) {
        stop()
        await waitFor(() => cancels > 0)
      }
      const result = await real.ssh.run(request)
      if (request.script.includes('\nrequest stop ')) cancels++
      return result
    }
    const cluster: Cluster = { ...real, ssh: { ...real.ssh, run } }
    let cancels = 0
    const harness = await harnessOf(cluster)
    const launched = await harness.launch({
      task: 'sleep 74400',
      network: 'full',
      requires: { node: 'n1' },
    })
    stop = () => launched.stop('cancel')
    expect(exitOf(await launched.outcome).stopped).toBe('cancel')
  })

  it('is sent to another node when the first one cannot start it', async () => {
    const cluster = clusterOf({
      nodes: nodes({ n1: { priority: 1 }, n2: { priority: 9 } }),
      thresholds: { cpu: 100, memory: 100, load: 1000 },
    })
    const home = lab.nodes[0]!.home
    lab.nodes[0]!.inside(blockCache(home))
    const harness = await harnessOf(cluster)
    const task = { task: 'echo ran', network: 'full' } as const
    const first = await harness.launch(task)
    expect(first.machine.details.node).toBe('n1')
    expect(await first.outcome).toMatchObject({ kind: 'not-started' })
    const again = { id: `${first.machine.id}a`, runtime: 'node', jobId: first.job.id, details: {} }
    await harness.provider.create({
      machine: again,
      manifest: first.manifest,
      remember: async details => void Object.assign(again.details, details),
      signal,
    })
    expect(again.details).toMatchObject({ node: 'n2' })
    await harness.provider.destroy(again, signal)
    // And nobody is sent there any more when it goes on like this.
    for (let time = 0; time < 2; time++)
      await (await harness.launch({ ...task, requires: { node: 'n1' } })).outcome
    expect((await harness.launch(task)).machine.details.node).toBe('n2')
    lab.nodes[0]!.inside(`rm ${home}/.cache`)
  })

  it('in a kept machine runs where the machine is, also after a restart of the daemon', async () => {
    const cluster = clusterOf({ nodes: nodes({ n1: { priority: 1 }, n2: { priority: 9 } }) })
    const harness = await harnessOf(cluster)
    const requires = { node: 'n2' }
    const first = await harness.launch({
      task: 'echo >note',
      network: 'full',
      lifecycle: 'persistent',
      requires,
    })
    expect(exitOf(await first.outcome).code).toBe(0)
    await harness.restart()
    const kept = first.machine
    const remember = async (details: object) => void Object.assign(kept.details, details)
    const manifest = parseManifest({ task: 'cat note', network: 'full', machine: kept.id })
    await harness.provider.create({ machine: kept, manifest, remember, signal })
    expect(kept.details).toMatchObject({ node: 'n2' })
    const second = await harness.launch({ task: 'cat note', network: 'full', machine: kept.id }, {}, kept)
    expect(exitOf(await second.outcome).code).toBe(0)
  })

  it('has the boot id of its node recorded, also when it is the first job there', async () => {
    const boot = lab.nodes[0]!.inside('cat /proc/sys/kernel/random/boot_id').trim()
    const harness = await harnessOf(clusterOf())
    for (let time = 0; time < 2; time++) {
      const launched = await harness.launch({ task: 'true', network: 'full', requires: { node: 'n1' } })
      expect(exitOf(await launched.outcome).code).toBe(0)
      expect(launched.machine.details).toMatchObject({ node: 'n1', boot })
    }
  })

  it('is lost for the first daemon when a second one takes it over, and continues for the second', async () => {
    const harness = await harnessOf(clusterOf())
    const task = 'echo up; while [ ! -e "$HOME/taken" ]; do sleep 0.05; done; echo down'
    const launched = await harness.launch({ task, network: 'full', requires: { node: 'n1' } })
    await launched.sink.until(sink => sink.text().includes('up'), 'it has started')
    // A copy of the home on another computer knows the same names.
    const other = harness.reattach({ ...launched, job: { ...launched.job, startedAt: 1 } }, 0)
    const lost = await launched.outcome
    expect(lost).toMatchObject({ kind: 'lost', error: { code: 'conflict', retryable: false } })
    expect(lost.kind === 'lost' && lost.error.message).toContain('Another daemon has taken over')
    expect(lost.kind === 'lost' && lost.error.hint).toContain('cluster/owner')
    lab.nodes[0]!.inside(`touch ${lab.nodes[0]!.home}/taken`)
    expect(exitOf(await other.outcome).code).toBe(0)
    expect(other.sink.text()).toBe('up\ndown\n')
  })

  it('that is the trial of a node which failed leaves it closed when its workspace cannot be copied there', async () => {
    let time = Date.now()
    const now = (): number => time
    const cluster = labCluster(lab, { nodes: nodes().slice(0, 1) }, { now })
    open.push(cluster)
    const harness = await harnessOf(cluster)
    const { sha256: blob } = await harness.blobs.put(tarOf('given.txt', 'given\n'), 1e6, 'upload')
    const task = { task: 'cat given.txt', network: 'full', workspace: { blob } } as const
    const closed = async (): Promise<string> =>
      cluster.choose({}, signal).then(
        ({ release }) => {
          release()
          return 'open'
        },
        (error: Error) => error.message,
      )
    const { home, inside } = lab.nodes[0]!
    inside(blockCache(home))
    for (let failure = 0; failure < 3; failure++)
      expect(await (await harness.launch(task)).outcome).toMatchObject({ kind: 'not-started' })
    expect(await closed()).toMatch(/failed 3 times in a row .*Cannot copy.*next try in 5 s/)

    time += 6_000
    const trial = await harness.launch(task)
    expect(await closed()).toContain('is being tried')
    expect(await trial.outcome).toMatchObject({ kind: 'not-started' })
    expect(await closed()).toMatch(/failed 4 times in a row .*next try in 10 s/)

    time += 11_000
    inside(`rm ${home}/.cache`)
    const good = await harness.launch(task)
    expect(exitOf(await good.outcome).code).toBe(0)
    expect(await closed()).toBe('open')
  })

  it('that waits for one node does not block jobs for other nodes', async () => {
    const cluster = clusterOf({ nodes: nodes({ n1: { max_tasks: 1 }, n2: { max_tasks: 1 } }) })
    const harness = await harnessOf(cluster)
    const task = 'while [ ! -e "$HOME/free" ]; do sleep 0.05; done'
    const holding = await harness.launch({ task, network: 'full', requires: { node: 'n1' } })
    expect(harness.provider.slots).toBe(2)
    const waiting = harness.launch({ task: 'true', network: 'full', requires: { node: 'n1' } })
    await waitFor(() => harness.provider.slots === 3)
    const other = await harness.launch({ task: 'true', network: 'full', requires: { node: 'n2' } })
    expect(exitOf(await other.outcome).code).toBe(0)
    lab.nodes[0]!.inside(`touch ${lab.nodes[0]!.home}/free`)
    expect(exitOf(await holding.outcome).code).toBe(0)
    expect(exitOf(await (await waiting).outcome).code).toBe(0)
    expect(harness.provider.slots).toBe(2)
  })

  it('releases its slot when it cannot be recorded', async () => {
    const cluster = clusterOf()
    const harness = await harnessOf(cluster)
    const machine = { id: 'unwritten', runtime: 'node', jobId: null, details: {} }
    const remember = (): Promise<void> => Promise.reject(new Error('no room in the store'))
    await expect(harness.provider.create({ machine, remember, signal })).rejects.toThrow('no room')
    expect(cluster.slots.inUse('n1') + cluster.slots.inUse('n2')).toBe(0)
    // It has nothing anywhere, so no node is asked.
    await harness.provider.destroy(machine, AbortSignal.abort())
  })

  it('is found on the nodes that answer while another does not', async () => {
    const off = { id: 'off', host: '127.0.0.1', port: 1, user: lab.user, identity: lab.identity }
    const cluster = clusterOf({ nodes: [...nodes(), off], ssh: { connectTimeout: 1 } })
    const harness = await harnessOf(cluster)
    const launched = await harness.launch({ task: 'true', network: 'full', requires: { node: 'n2' } })
    await launched.outcome
    const found = await harness.provider.list(signal)
    expect(found.map(({ id }) => id)).toContain(launched.machine.id)
    const on = (node: string) => ({ id: `on ${node}`, runtime: 'node', jobId: null, details: { node } })
    const known = await harness.provider.list(signal, ['n1', 'n2', 'off', 'removed'].map(on))
    const ids = known.map(({ id }) => id).filter(id => id.startsWith('on '))
    expect(ids).toEqual(['on off', 'on removed'])
  })
})

async function* tarOf(name: string, content: string): AsyncGenerator<Uint8Array> {
  const tar = pack()
  tar.entry({ name }, content)
  tar.finalize()
  for await (const chunk of tar) yield chunk as Uint8Array
}

/** A file where commands are kept, so that none can be: again while a session that is being opened makes it anew. */
const blockCache = (home: string): string =>
  `until [ -f ${home}/.cache ]; do rm -rf ${home}/.cache; touch ${home}/.cache; done`
