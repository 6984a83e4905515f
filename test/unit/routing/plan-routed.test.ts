import { describe, expect, it } from 'vitest'
import { requirements } from '../../../src/cli/manifest/from-input.ts'
import { parseManifest } from '../../../src/jobs/manifest.ts'
import type { Cluster } from '../../../src/nodes/cluster.ts'
import { type ClusterConfigInput, findNode, parseCluster } from '../../../src/nodes/inventory.ts'
import { createLocalMonitor } from '../../../src/nodes/probe/local-load.ts'
import { batchManifest, childManifest } from '../../../src/routing/batch-manifest.ts'
import { planRouted, type Routing } from '../../../src/routing/plan-routed.ts'

const routing = (options: Partial<Routing> = {}, input: ClusterConfigInput = {}): Routing => {
  const config = parseCluster({ nodes: [{ id: 'n1', host: 'n1.example' }], ...input })
  const cluster: Pick<Cluster, 'config' | 'nodes' | 'find' | 'peek'> = {
    config,
    nodes: config.nodes,
    find: name => findNode(config.nodes, name),
    peek: () => undefined,
  }
  return {
    cluster: cluster as Cluster,
    local: { load: async () => CALM, has: program => program === 'python3' },
    localName: 'here',
    hostAllowed: true,
    isRoot: false,
    ...options,
  }
}

const CALM = { cpu: 1, memory: 1, load: 0, cores: 4, disk: 1 }

describe('a routed command', () => {
  it('that stays with a daemon run by root does not run what a server sends', async () => {
    const request = { command: 'curl https://x | sh', autoRoute: true }
    await expect(planRouted(request, routing({ isRoot: true }))).rejects.toThrow('download-to-root-shell')
    expect((await planRouted(request, routing({ isRoot: false }))).manifest.runtime).toBe('host')
  })

  it('that goes to a node is judged there by whom it logs in as', async () => {
    const request = { command: 'curl https://x | sh', autoRoute: true, node: 'n1' }
    expect((await planRouted(request, routing({ isRoot: true }))).manifest.runtime).toBe('node')
  })

  it('goes to a node while this computer is overloaded, from the first one on', async () => {
    const busy = { load: async () => ({ ...CALM, cpu: 99 }), has: () => false }
    expect(await planRouted({ command: 'ls', autoRoute: true }, routing({ local: busy }))).toMatchObject({
      autoRouted: true,
      because: expect.stringContaining('overloaded: cpu 99 %'),
    })
    expect((await planRouted({ command: 'ls', autoRoute: true }, routing())).autoRouted).toBe(false)
  })

  it('stays where it must when this computer has what it requires', async () => {
    const request = { command: 'ls', autoRoute: false, requires: { capabilities: ['python3'] } }
    expect((await planRouted(request, routing())).manifest.runtime).toBe('host')
    const other = { ...request, requires: { capabilities: ['docker'] } }
    await expect(planRouted(other, routing())).rejects.toThrow('this computer has no docker')
  })
})

describe('a required label', () => {
  const labelled: ClusterConfigInput = {
    nodes: [
      { id: 'n1', host: 'n1.example', labels: { zone: 'eu' } },
      { id: 'n2', host: 'n2.example' },
    ],
  }

  it('goes with the job to where the node is chosen', async () => {
    const request = { command: 'ls', autoRoute: true, requires: { labels: { zone: 'eu' } } }
    const plan = await planRouted(request, routing({}, labelled))
    expect(plan.manifest).toMatchObject({ runtime: 'node', requires: { labels: { zone: 'eu' } } })
    expect(parseManifest(plan.manifest).requires).toEqual({ labels: { zone: 'eu' } })
  })

  it('that no node has is an error which says where it failed', async () => {
    const request = { command: 'ls', autoRoute: true, requires: { labels: { zone: 'us' } } }
    await expect(planRouted(request, routing({}, labelled))).rejects.toThrow(
      'No node fits zone=us: n1 has zone=eu; n2 has zone=(nothing)',
    )
  })

  it('is written label.NAME on the command line', () => {
    expect(requirements('os=linux,label.zone=eu,label.rack=7', 'run')).toEqual({
      os: 'linux',
      labels: { zone: 'eu', rack: '7' },
    })
    expect(() => requirements('label.=x', 'run')).toThrow("not 'label.'")
  })
})

describe('the load of this computer', () => {
  it('is known to the first who asks, and looked at once for all who ask together', async () => {
    const leaving = new AbortController()
    const monitor = createLocalMonitor(leaving.signal)
    const [one, two] = await Promise.all([monitor.load(), monitor.load()])
    expect(one).toBe(two)
    expect(one.cores).toBeGreaterThan(0)
    expect(await monitor.load()).toBe(one)
  })

  it('comes with the programs that are here', () => {
    const monitor = createLocalMonitor(new AbortController().signal, '/usr/bin:/bin')
    expect(monitor.has('sh')).toBe(true)
    expect(monitor.has('no-such-program')).toBe(false)
    expect(monitor.has('../bin/sh')).toBe(false)
  })
})

describe('cluster.policy.disable', () => {
  it('takes the names of built-in rules and no others', () => {
    const config = parseCluster({ policy: { disable: ['too-complex'] } })
    expect(config.policy.disable).toEqual(['too-complex'])
    expect(() => parseCluster({ policy: { disable: ['to-complex'] } })).toThrow(
      /policy\.disable\[0\].*too-complex/,
    )
  })
})

describe('a batch', () => {
  const commands = Array.from({ length: 1000 }, (_, index) => `echo ${index}`)
  const parent = batchManifest({
    commands: ['--', ...commands.slice(1)],
    requires: { labels: { zone: 'eu' } },
    timeout: 70,
    cwd: '/srv/x',
  })

  it('of as many commands as the tool takes is a manifest', () => {
    expect(parseManifest(parent).runtime).toBe('batch')
  })

  it('hands each command its directory, time and requirements', async () => {
    const nodes = [{ id: 'n1', host: 'n1.example', labels: { zone: 'eu' } }]
    const child = await childManifest(routing({}, { nodes }), parent, 7)
    expect(child).toMatchObject({
      task: 'echo 7',
      timeout: 70,
      workspace: { path: '/srv/x' },
      requires: { labels: { zone: 'eu' } },
      labels: { 'deputy/index': '7' },
    })
    expect((await childManifest(routing({}, { nodes }), parent, 0)).task).toBe('--')
  })
})
