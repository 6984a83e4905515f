import { spawn } from 'node:child_process'
import { setMaxListeners } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../src/client/daemon-client.ts'
import {
  BUSYBOX,
  createEngine,
  type EngineName,
  importBusybox,
  missingForEngine,
  type TestEngine,
} from '../test/support/containers/engines.ts'
import { has } from '../test/support/has.ts'
import { type BenchDaemon, startDaemon } from './daemon.ts'
import { type Bench, type Figure, medianOf, percentile } from './figure.ts'
import { gigabyteOfOutput } from './gigabyte.ts'

const ROUNDS = 20
const QUICK_ROUNDS = 7
const READY_MS = 60_000
const never = new AbortController().signal
setMaxListeners(0, never)

/** Jobs of an image beside `docker run --rm` and `podman run --rm` of the same image. */
const containerStart =
  (name: EngineName): Bench['run'] =>
  async quick => {
    if (missingForEngine(name) !== undefined || !has(name)) return []
    const engine = await createEngine(name)
    try {
      await importBusybox(engine)
      return await withDaemon(engine, async daemon => {
        const { client } = daemon
        const times = { cold: [] as number[], warm: [] as number[], floor: [] as number[] }
        for (let i = -1; i < (quick ? QUICK_ROUNDS : ROUNDS); i++) {
          const floor = await bareRun(engine)
          const warm = await afterWarm(client, () => firstByte(client, {}))
          // Other resources than those of the container that was started ahead.
          const cold = await afterWarm(client, () => firstByte(client, { resources: { cpu: 1 } }))
          // The first round fills caches.
          if (i < 0) continue
          times.floor.push(floor)
          times.warm.push(warm)
          times.cold.push(cold)
        }
        const floor = { name: `${name} run --rm`, value: percentile(times.floor, 0.5) }
        const figure = (what: 'warm' | 'cold', limit: number): Figure => ({
          name: `${name}, ${what}: submit to first output byte, p50`,
          ...medianOf(times[what]),
          unit: 'ms',
          floor,
          target: { of: 'ratio', at: 'most', limit },
        })
        const starts = [figure('warm', 0.5), figure('cold', 1.2)]
        if (quick) return starts
        const bursts = await burst(name, client)
        const output = { name: `${name}, 1 GB of output`, image: BUSYBOX }
        return [...starts, ...bursts, ...(await gigabyteOfOutput(daemon, output))]
      })
    } finally {
      await engine.close()
    }
  }

const withDaemon = async (
  engine: TestEngine,
  work: (daemon: BenchDaemon) => Promise<Figure[]>,
): Promise<Figure[]> => {
  const daemon = await startDaemon({}, async ({ configDir, configFile }) => {
    mkdirSync(configDir, { recursive: true })
    writeFileSync(configFile, JSON.stringify({ container: { host: engine.host, warm: [BUSYBOX] } }))
  })
  try {
    return await work(daemon)
  } finally {
    await daemon.stop()
  }
}

const firstByte = async (client: Client, more: object): Promise<number> => {
  const began = performance.now()
  const { job_id } = await client.submit({ task: 'echo hello', image: BUSYBOX, ...more })
  for await (const page of client.follow(job_id, { signal: never }))
    if (page.pieces.length > 0) return performance.now() - began
  throw new Error(`no output: ${(await client.get(job_id)).error?.message}`)
}

/** Waits until a container is started ahead and all others are gone, so that nothing else is going on. */
const afterWarm = async (client: Client, work: () => Promise<number>): Promise<number> => {
  for (const end = performance.now() + READY_MS; performance.now() < end; ) {
    const machines = await client.machines()
    if (machines.length === 1 && machines[0]?.state === 'ready') return work()
    await sleep(20)
  }
  throw new Error(`no container was started ahead within ${READY_MS / 1000} s`)
}

const bareRun = ({ cli }: TestEngine): Promise<number> =>
  new Promise((resolve, reject) => {
    const began = performance.now()
    const [program = '', ...args] = cli.argv
    const rest = ['run', '--rm', '--network', 'none', BUSYBOX, 'echo', 'hello']
    const child = spawn(program, [...args, ...rest], { env: cli.env, stdio: ['ignore', 'pipe', 'inherit'] })
    let first: number | undefined
    child.once('error', reject)
    child.stdout.once('data', () => (first = performance.now() - began))
    child.once('close', () =>
      first === undefined ? reject(new Error(`${program} run printed nothing`)) : resolve(first),
    )
  })

const burst = async (name: EngineName, client: Client): Promise<Figure[]> => {
  const began = performance.now()
  const times = await Promise.all(Array.from({ length: 100 }, () => firstByte(client, {})))
  const wall = performance.now() - began
  return [
    {
      name: `${name}, burst of 100 jobs: submit to first byte, p95`,
      value: percentile(times, 0.95),
      unit: 'ms',
    },
    { name: `${name}, burst of 100 jobs: jobs a second`, value: 100_000 / wall, unit: '/s' },
  ]
}

export const containerBenches: Bench[] = (['docker', 'podman'] as const).map(name => ({
  name: `container-${name}`,
  quick: true,
  run: containerStart(name),
}))
