import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { AppError } from '../../../src/jobs/errors.ts'
import { route } from '../../../src/nodes/router.ts'
import { sshFailureOf } from '../../../src/nodes/ssh/ssh-errors.ts'
import { startDns } from '../../support/dns.ts'
import { labCluster, runOn } from '../../support/labcluster.ts'
import { type Relay, startRelay } from '../../support/relay.ts'
import {
  createSshLab,
  missingForIpv6,
  missingForNamespaces,
  missingForSshLab,
  type SshLab,
  waitFor,
} from '../../support/sshlab.ts'

const missing = missingForSshLab()
const why = (reason: string | undefined): string => (reason ? ` (skipped: ${reason})` : '')
const { signal } = new AbortController()
let next = 0
const newId = (): string => `w${process.pid}-${next++}`

describe.skipIf(missing !== undefined)(`a slow node${why(missing)}`, () => {
  let lab: SshLab
  let slow: Relay
  let thin: Relay
  const nodes = () => {
    const [near, far, narrow] = lab.nodes.map(({ address, port }) => ({ host: address, port }))
    const login = { user: lab.user, identity: lab.identity }
    return [
      { ...login, ...near!, id: 'near' },
      { ...login, ...far!, host: '127.0.0.1', port: slow.port, id: 'far' },
      { ...login, ...narrow!, host: '127.0.0.1', port: thin.port, id: 'narrow' },
    ]
  }
  const slowCluster = (some: ReturnType<typeof nodes>, status = 5) =>
    labCluster(lab, { nodes: some, timeouts: { status }, ssh: { connectTimeout: 15, timeout: 15 } })
  beforeAll(async () => {
    lab = await createSshLab({ nodes: 3, mode: 'loopback' })
    const way = (index: number) => ({ host: lab.nodes[index]!.address, port: lab.nodes[index]!.port })
    slow = await startRelay(way(1), { delayMs: 40 })
    thin = await startRelay(way(2))
  })
  afterAll(async () => {
    await slow?.close()
    await thin?.close()
    await lab?.close()
  })

  it('is known to be far, and holds up the status of the others no longer than one time-out', async () => {
    const cluster = slowCluster(nodes(), 15)
    const first = await cluster.status({ force: true })
    expect(first.map(({ health }) => health)).not.toContain('unreachable')
    const [near, far] = await cluster.status({ force: true })
    expect(far!.latencyMs).toBeGreaterThanOrEqual(79)
    expect(far!.latencyMs).toBeGreaterThan(near!.latencyMs)
    cluster.dispose()

    thin.swallow(true)
    const patient = slowCluster(nodes(), 5)
    const started = performance.now()
    const [fast, late, gone] = await patient.status({ force: true })
    expect(performance.now() - started).toBeLessThan(20_000)
    expect([fast, late].map(status => status!.health)).not.toContain('unreachable')
    expect(gone).toMatchObject({ id: 'narrow', health: 'unreachable' })
    expect(gone!.reason).toContain('narrow')
    thin.swallow(false)
    thin.cut()
    patient.dispose()
  })

  it('is taken after a near one, and the reason says how far it is', async () => {
    const cluster = slowCluster(nodes().slice(0, 2).reverse(), 15)
    await cluster.status()
    slow.set({ delayMs: 400 })
    const seen = await cluster.status({ force: true })
    expect(seen.map(({ id, latencyMs }) => [id, latencyMs >= 790])).toEqual([
      ['far', true],
      ['near', false],
    ])
    // Both are this very computer, at moments that differ: made equal but for the distance.
    const { report } = seen[0]!
    const candidates = seen.map(({ id, latencyMs, at }) => ({
      ...{ id, priority: 5, specialties: new Set<string>(), maxTasks: 4, running: 0 },
      traits: { os: 'linux', arch: 'amd64', capabilities: new Set<string>(), labels: {} },
      measurement: { ...report!, latencyMs, at },
    }))
    const choice = route(candidates, { now: Date.now() })
    expect(choice.id).toBe('near')
    expect(choice.reason).toContain(`${seen[1]!.latencyMs} ms away`)
    slow.set({ delayMs: 40 })
    cluster.dispose()
  })

  it('completes a command, with all of its output', async () => {
    const cluster = slowCluster(nodes())
    const far = await runOn(cluster, 'far', { id: newId(), command: 'echo slow; seq 20000; exit 3' })
    expect(far.end).toMatchObject({ kind: 'exit', code: 3 })
    expect(far.stdout.split('\n')).toHaveLength(20_002)
    thin.set({ bytesPerSecond: 300_000 })
    const narrow = await runOn(cluster, 'narrow', {
      id: newId(),
      command: 'head -c 600000 /dev/zero | tr "\\0" x',
    })
    expect(narrow.end).toMatchObject({ kind: 'exit', code: 0 })
    expect(narrow.stdout).toHaveLength(600_000)
    thin.set({})
    cluster.dispose()
  })

  it('keeps a command when the way breaks again and again', async () => {
    const cluster = slowCluster(nodes())
    const command = 'echo x >> "$HOME/ran"; for i in $(seq 1 60); do echo "line $i"; sleep 0.05; done; exit 5'
    let seen = ''
    const running = runOn(cluster, 'far', { id: newId(), command }, { onOutput: text => (seen += text) })
    for (const line of ['line 5\n', 'line 20\n', 'line 40\n']) {
      await waitFor(() => seen.includes(line))
      slow.cut()
    }
    const held = await running
    expect(held.end).toMatchObject({ kind: 'exit', code: 5 })
    expect(held.stdout).toBe(Array.from({ length: 60 }, (_, i) => `line ${i + 1}\n`).join(''))
    expect(lab.nodes[1]!.inside(`wc -l < ${lab.nodes[1]!.home}/ran`).trim()).toBe('1')
    cluster.dispose()
  })
})

describe.skipIf(missing !== undefined)(`the way to a node${why(missing)}`, () => {
  it('is asked of the name server of the configuration', async () => {
    const lab = await createSshLab({ nodes: 1, mode: 'loopback' })
    const dns = await startDns({ 'builder.lab.test': '127.0.0.1', plain: '127.0.0.1' })
    const node = { port: lab.nodes[0]!.port, user: lab.user, identity: lab.identity }
    const cluster = labCluster(lab, {
      nodes: [
        { ...node, id: 'one', host: 'builder.lab.test' },
        { ...node, id: 'two', host: 'plain' },
      ],
      addresses: { dns: dns.address, allow: ['loopback'] },
    })
    for (const id of ['one', 'two'])
      expect((await runOn(cluster, id, { id: newId(), command: 'echo found' })).stdout).toBe('found\n')
    expect(dns.asked).toEqual(expect.arrayContaining(['builder.lab.test', 'plain']))
    cluster.dispose()

    const strict = labCluster(lab, {
      nodes: [{ ...node, id: 'one', host: 'builder.lab.test' }],
      addresses: { dns: dns.address },
    })
    await expect(strict.target(strict.find('one'), signal)).rejects.toThrow(
      `dns ${dns.address} returned 127.0.0.1, which is this computer itself`,
    )
    strict.dispose()
    dns.close()
    await lab.close()
  })

  it('is given up when the node logs us in and then says nothing', async () => {
    const lab = await createSshLab({ nodes: 1, mode: 'loopback', config: ['ForceCommand sleep 60'] })
    const cluster = labCluster(lab, { ssh: { timeout: 1, connectTimeout: 1 } })
    const started = performance.now()
    const error = await cluster.probe(cluster.find('n1'), signal).catch((thrown: unknown) => thrown)
    expect(performance.now() - started).toBeLessThan(20_000)
    expect(error).toBeInstanceOf(AppError)
    expect(sshFailureOf(error)).toBe('timed-out')
    expect((error as AppError).hint).toContain('cluster.ssh.timeout')
    cluster.dispose()
    await lab.close()
  })
})

const noIpv6 = missing ?? missingForIpv6()
const noNetwork = noIpv6 ?? missingForNamespaces()

describe.each([
  { mode: 'loopback' as const, skip: noIpv6, prefix: '::1' },
  { mode: 'namespaces' as const, skip: noNetwork, prefix: 'fd00:' },
])('a node with an IPv6 address ($prefix)', ({ mode, skip, prefix }) => {
  let lab: SshLab
  beforeAll(async () => {
    if (skip === undefined) lab = await createSshLab({ nodes: 2, mode, ipv6: true })
  })
  afterAll(() => lab?.close())

  it.skipIf(skip !== undefined)(`runs commands${why(skip)}`, async () => {
    expect(lab.nodes[0]!.address.startsWith(prefix)).toBe(true)
    const cluster = labCluster(lab)
    const { stdout, end } = await runOn(cluster, 'n2', {
      id: newId(),
      command: 'set -- $SSH_CONNECTION; echo "$1 $DEPUTY_LAB_NODE"',
    })
    expect(end).toMatchObject({ kind: 'exit', code: 0 })
    expect(stdout).toMatch(/^(::1|fd00:.*::1) n2\n$/)
    const all = await cluster.status({ force: true })
    expect(all.map(({ health }) => health)).not.toContain('unreachable')
    cluster.dispose()
  })

  it.skipIf(skip !== undefined)(`is found by name, and named in errors${why(skip)}`, async () => {
    const { address, port } = lab.nodes[0]!
    const dns = await startDns({ 'six.lab.test': address })
    const node = { id: 'six', host: 'six.lab.test', port, user: lab.user, identity: lab.identity }
    const addresses = { dns: dns.address, allow: ['loopback' as const] }
    const cluster = labCluster(lab, { nodes: [node], addresses })
    expect((await runOn(cluster, 'six', { id: newId(), command: 'echo six' })).stdout).toBe('six\n')
    cluster.dispose()
    const off = labCluster(lab, { nodes: [{ ...node, host: address, port: 1 }], ssh: { connectTimeout: 2 } })
    await expect(off.probe(off.find('six'), signal)).rejects.toThrow(`[${address}]:1`)
    off.dispose()
    dns.close()
  })
})
