import { spawn } from 'node:child_process'
import { setMaxListeners } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../src/client/daemon-client.ts'
import { createCluster } from '../src/nodes/cluster.ts'
import { type ClusterConfigInput, parseCluster } from '../src/nodes/inventory.ts'
import { type Candidate, route } from '../src/nodes/router.ts'
import { createSshLab, missingForSshLab, type SshLab } from '../test/support/sshlab.ts'
import { startDaemon } from './daemon.ts'
import { type Bench, type Figure, medianOf, percentile } from './figure.ts'

const ROUNDS = 40
const QUICK_ROUNDS = 15
const PAUSE_MS = 250
const never = new AbortController().signal
setMaxListeners(0, never)

const nodesOf = (lab: SshLab, count = lab.nodes.length): NonNullable<ClusterConfigInput['nodes']> =>
  Array.from({ length: count }, (_, index) => {
    const node = lab.nodes[index % lab.nodes.length]!
    return {
      id: `n${index + 1}`,
      host: node.address,
      port: node.port,
      user: lab.user,
      identity: lab.identity,
      max_tasks: 16,
    }
  })

const config = (nodes: ClusterConfigInput['nodes']): ClusterConfigInput => ({
  nodes,
  ssh: { configFile: 'none' },
  thresholds: { cpu: 100, memory: 100, load: 100_000 },
})

/** `ssh node COMMAND` over a connection that is open already: what nobody who uses ssh can beat. */
const bareSsh = async (lab: SshLab): Promise<{ run(command: string): Promise<number>; close(): void }> => {
  const node = lab.nodes[0]!
  const socket = join(lab.directory, 'bare')
  const options = [
    '-F',
    'none',
    '-o',
    'BatchMode=yes',
    '-o',
    'StrictHostKeyChecking=accept-new',
    '-o',
    'LogLevel=ERROR',
  ]
  const where = [
    '-o',
    `UserKnownHostsFile=${lab.directory}/bare_hosts`,
    '-i',
    lab.identity,
    '-p',
    String(node.port),
    '-l',
    lab.user,
  ]
  const master = spawn('ssh', [...options, ...where, '-M', '-S', socket, node.address, 'echo up; cat'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  await new Promise(resolve => master.stdout.once('data', resolve))
  return {
    run: command =>
      new Promise((resolve, reject) => {
        const began = performance.now()
        const child = spawn('ssh', [...options, ...where, '-S', socket, node.address, command], {
          stdio: 'ignore',
        })
        child.once('error', reject)
        child.once('exit', code =>
          code === 0 ? resolve(performance.now() - began) : reject(new Error(`ssh ended with ${code}`)),
        )
      }),
    close: () => master.kill(),
  }
}

const routed = async (client: Client, command: string): Promise<number> => {
  const began = performance.now()
  const { job_id } = await client.submit({ task: command, runtime: 'node', network: 'full' })
  const end = await client.wait(job_id, { timeoutMs: 60_000, signal: never })
  if (end.status !== 'success') throw new Error(`${end.status}: ${end.error?.message}`)
  return performance.now() - began
}

const commands: Bench = {
  name: 'cluster',
  quick: true,
  run: async quick => {
    const missing = missingForSshLab()
    if (missing) {
      process.stderr.write(`  left out: ${missing}\n`)
      return []
    }
    const lab = await createSshLab({ nodes: 3 })
    const daemon = await startDaemon({}, async home => {
      mkdirSync(home.configDir, { recursive: true })
      writeFileSync(home.configFile, JSON.stringify({ cluster: config(nodesOf(lab)) }))
    })
    const bare = await bareSsh(lab)
    try {
      for (let i = 0; i < 6; i++) await routed(daemon.client, 'true')
      const ours: number[] = []
      const floor: number[] = []
      for (let i = 0; i < (quick ? QUICK_ROUNDS : ROUNDS); i++) {
        // As far apart as commands of an agent are at the least: neither pays for what the other leaves running.
        await sleep(PAUSE_MS)
        floor.push(await bare.run('true'))
        await sleep(PAUSE_MS)
        ours.push(await routed(daemon.client, 'true'))
      }
      const figures: Figure[] = [
        {
          name: "a routed 'true', p50",
          ...medianOf(ours),
          unit: 'ms',
          floor: { name: "'ssh node true' on an open connection", value: percentile(floor, 0.5) },
          target: { of: 'ratio', at: 'most', limit: 3 },
        },
        {
          name: "a routed 'true', p95",
          value: percentile(ours, 0.95),
          unit: 'ms',
          floor: { name: 'ssh', value: percentile(floor, 0.95) },
        },
      ]
      return quick ? figures : [...figures, await atOnce(daemon.client)]
    } finally {
      bare.close()
      await daemon.stop()
      await lab.close()
    }
  },
}

const atOnce = async (client: Client): Promise<Figure> => {
  const began = performance.now()
  await Promise.all(Array.from({ length: 100 }, (_, i) => routed(client, `echo ${i}`)))
  const value = performance.now() - began
  return { name: '100 routed commands at once over three nodes', value, unit: 'ms' }
}

const STATUS_SECONDS = 5

const status: Bench = {
  name: 'cluster-status',
  run: async () => {
    if (missingForSshLab()) return []
    const lab = await createSshLab({
      nodes: 5,
      mode: 'loopback',
      config: ['MaxStartups 200', 'MaxSessions 100'],
    })
    const directory = mkdtempSync(join(tmpdir(), 'deputy-bench-'))
    const cluster = createCluster({
      config: parseCluster({ ...config(nodesOf(lab, 50)), timeouts: { status: STATUS_SECONDS } }),
      owner: 'bench',
      stateDirectory: directory,
      runtimeDirectory: join(directory, 'c'),
    })
    try {
      const look = async (): Promise<{ ms: number; away: number }> => {
        const began = performance.now()
        const all = await cluster.status({ force: true })
        return {
          ms: performance.now() - began,
          away: all.filter(({ health }) => health === 'unreachable').length,
        }
      }
      const cold = await look()
      const warm = await look()
      const target = { of: 'value', at: 'most', limit: STATUS_SECONDS * 1000 + 200 } as const
      return [
        {
          name: `status of 50 nodes, first look (${cold.away} unreachable)`,
          value: cold.ms,
          unit: 'ms',
          target,
        },
        {
          name: `status of 50 nodes, connections open (${warm.away} unreachable)`,
          value: warm.ms,
          unit: 'ms',
          target,
        },
      ]
    } finally {
      cluster.close()
      await lab.close()
      rmSync(directory, { recursive: true, force: true })
    }
  },
}

const router: Bench = {
  name: 'router',
  run: async () => {
    const candidates = Array.from(
      { length: 10_000 },
      (_, i): Candidate => ({
        id: `n${i}`,
        traits: {
          os: i % 3 ? 'linux' : 'macos',
          arch: i % 2 ? 'x86_64' : 'arm64',
          capabilities: new Set(['docker', 'bash']),
          labels: {},
        },
        priority: 1 + (i % 10),
        specialties: new Set(['compilation']),
        maxTasks: 8,
        running: i % 8,
        measurement: { cpu: i % 100, memory: i % 90, load: i % 7, cores: 8, latencyMs: i % 50, at: 1000 },
      }),
    )
    const request = {
      requires: { os: 'linux', arch: 'amd64', capabilities: ['docker'] },
      topics: ['compilation'],
      now: 2000,
    }
    const samples: number[] = []
    for (let i = 0; i < 300; i++) {
      const began = performance.now()
      route(candidates, request)
      samples.push(performance.now() - began)
    }
    const p50 = percentile(samples.slice(50), 0.5)
    return [
      { name: 'one decision among 10,000 nodes, p50', value: p50, unit: 'ms' },
      { name: 'nodes weighed in a millisecond', value: 10_000 / p50, unit: '' },
    ]
  },
}

export const clusterBenches: Bench[] = [commands, status, router]
