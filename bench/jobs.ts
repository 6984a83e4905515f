import { spawn } from 'node:child_process'
import { setMaxListeners } from 'node:events'
import type { Client } from '../src/client/daemon-client.ts'
import { BARE_BWRAP } from './bare-bwrap.ts'
import { type BenchDaemon, startDaemon } from './daemon.ts'
import { type Bench, type Figure, medianOf, percentile } from './figure.ts'
import { gigabyteOfOutput } from './gigabyte.ts'

const ROUNDS = 60
const QUICK_ROUNDS = 25
const never = new AbortController().signal
setMaxListeners(0, never)

/** From a submit over the socket to the first byte of the job's output, read over the socket. */
const firstByte = async (client: Client, task: string): Promise<number> => {
  const began = performance.now()
  const { job_id } = await client.submit({ task })
  for await (const page of client.follow(job_id, { signal: never }))
    if (page.pieces.length > 0) return performance.now() - began
  throw new Error('no output')
}

/** The floor: the same echo in bubblewrap, spawned from Node and nothing else. */
const bareBubblewrap = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const began = performance.now()
    const child = spawn('bwrap', [...BARE_BWRAP, '--', 'bash', '-c', 'echo hello'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    child.once('error', reject)
    child.stdout.once('data', () => resolve(performance.now() - began))
  })

const samples = async (count: number, one: () => Promise<number>): Promise<number[]> => {
  const taken: number[] = []
  for (let i = 0; i < count; i++) taken.push(await one())
  return taken
}

const start: Bench['run'] = async quick => {
  const daemon = await startDaemon()
  try {
    await samples(10, () => firstByte(daemon.client, 'echo warm'))
    await samples(5, bareBubblewrap)
    const ours: number[] = []
    const floor: number[] = []
    // Side by side, so that whatever else the machine does meets both.
    for (let i = 0; i < (quick ? QUICK_ROUNDS : ROUNDS); i++) {
      floor.push(await bareBubblewrap())
      ours.push(await firstByte(daemon.client, 'echo hello'))
    }
    const bare = { name: 'bare bwrap echo', value: percentile(floor, 0.5) }
    return [
      {
        name: 'submit to first output byte, p50',
        ...medianOf(ours),
        unit: 'ms',
        floor: bare,
        target: { of: 'ratio', at: 'most', limit: 3 },
      },
      {
        name: 'submit to first output byte, p95',
        value: percentile(ours, 0.95),
        unit: 'ms',
        floor: { name: 'bare bwrap echo, p95', value: percentile(floor, 0.95) },
      },
      ...(quick ? [] : await burst(daemon)),
    ]
  } finally {
    await daemon.stop()
  }
}

const burst = async ({ client }: BenchDaemon): Promise<Figure[]> => {
  const began = performance.now()
  const times = await Promise.all(Array.from({ length: 100 }, () => firstByte(client, 'echo hello')))
  const wall = performance.now() - began
  return [
    ...([0.5, 0.95, 0.99] as const).map(share => ({
      name: `burst of 100 jobs: submit to first byte, p${share * 100}`,
      value: percentile(times, share),
      unit: 'ms',
    })),
    { name: 'burst of 100 jobs: jobs a second', value: 100_000 / wall, unit: '/s' },
  ]
}

const gigabyte: Bench['run'] = async () => {
  const daemon = await startDaemon()
  try {
    await firstByte(daemon.client, 'echo warm')
    return await gigabyteOfOutput(daemon)
  } finally {
    await daemon.stop()
  }
}

/** Fifty jobs printing at once: every line of each must be there. */
const fifty: Bench['run'] = async () => {
  const daemon = await startDaemon({ DEPUTY_MAX_RUNNING: '50' })
  try {
    const lines = 2000
    const began = performance.now()
    const jobs = await Promise.all(
      Array.from({ length: 50 }, () =>
        daemon.client.submit({ task: `for i in $(seq ${lines}); do echo "line $i"; done`, timeout: 300 }),
      ),
    )
    let complete = 0
    for (const { job_id } of jobs) {
      while ((await daemon.client.wait(job_id, { timeoutMs: 50_000, signal: never })).completed_at === null);
      const { output } = await daemon.client.result(job_id, { maxBytes: 1_000_000 })
      const expected = Array.from({ length: lines }, (_, i) => `line ${i + 1}\n`).join('')
      if (output === expected) complete += 1
    }
    return [
      {
        name: '50 jobs printing at once: complete',
        value: complete,
        unit: 'jobs',
        target: { of: 'value', at: 'least', limit: 50 },
      },
      { name: '50 jobs printing at once: wall clock', value: performance.now() - began, unit: 'ms' },
    ]
  } finally {
    await daemon.stop()
  }
}

export const jobBenches: Bench[] = [
  { name: 'start', quick: true, run: start },
  { name: 'gigabyte', run: gigabyte },
  { name: 'fifty', run: fifty },
]
