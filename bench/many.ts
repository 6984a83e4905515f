import { spawn } from 'node:child_process'
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../src/client/daemon-client.ts'
import { BARE_BWRAP } from './bare-bwrap.ts'
import { type BenchDaemon, startDaemon } from './daemon.ts'
import type { Bench, Figure } from './figure.ts'
import { listProcesses, proportionalMemory, shimsOf, treeOf } from './processes.ts'

const AT_ONCE = 4
const MIB = 2 ** 20
const LONG_MS = 300_000
const never = new AbortController().signal
setMaxListeners(0, never)

/** Calls `one` so many times, `AT_ONCE` at a time; returns the milliseconds. */
const several = async (count: number, one: () => Promise<void>): Promise<number> => {
  let left = count
  const worker = async (): Promise<void> => {
    while (left-- > 0) await one()
  }
  const began = performance.now()
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return performance.now() - began
}

const job = async (client: Client): Promise<void> => {
  const { job_id } = await client.submit({ task: 'true' })
  while ((await client.wait(job_id, { timeoutMs: 50_000, signal: never })).completed_at === null);
}

const bareJob = (): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn('bwrap', [...BARE_BWRAP, '--', 'bash', '-c', 'true'], { stdio: 'ignore' })
    child.once('error', reject)
    child.once('exit', () => resolve())
  })

const SLICES = 5

/** Trivial jobs by turns with bare bubblewrap, and what they cost. */
const burst = async ({ client, pid, home }: BenchDaemon, count: number): Promise<Figure[]> => {
  const cpu = () => {
    const all = listProcesses()
    const shims = shimsOf(home.stateDir, all)
    return {
      daemon: all.find(process => process.pid === pid)?.cpu.own ?? 0,
      shim: shims.reduce((sum, { cpu }) => sum + cpu.own, 0),
      sandbox: shims.reduce((sum, { cpu }) => sum + cpu.children, 0),
    }
  }
  const before = cpu()
  const times = { ours: 0, bare: 0 }
  for (let slice = 0; slice < SLICES; slice++) {
    times.bare += await several(count / SLICES, bareJob)
    times.ours += await several(count / SLICES, () => job(client))
  }
  const after = cpu()
  const bare = { name: 'bare bwrap', value: (count * 1000) / times.bare }
  const jobs = `${count} trivial jobs, ${AT_ONCE} at once`
  return [
    { name: `${jobs}: jobs a second`, value: (count * 1000) / times.ours, unit: '/s', floor: bare },
    ...(['daemon', 'shim', 'sandbox'] as const).map(part => ({
      name: `${jobs}: CPU of the ${part} for one`,
      value: (after[part] - before[part]) / count,
      unit: 'ms',
    })),
  ]
}

/** Starts so many jobs that only wait; returns their ids when all of them run. */
const startWaiting = async ({ client }: BenchDaemon, count: number): Promise<string[]> => {
  const jobs = await Promise.all(
    Array.from({ length: count }, () => client.submit({ task: 'echo on; sleep 600', timeout: 900 })),
  )
  const until = performance.now() + LONG_MS
  for (const { job_id } of jobs)
    while ((await client.get(job_id)).output_bytes === 0) {
      if (performance.now() > until) throw new Error(`${count} jobs do not run after ${LONG_MS} ms`)
      await sleep(50)
    }
  return jobs.map(({ job_id }) => job_id)
}

/** Cancels all at once; returns the milliseconds until the last has ended. */
const cancelAll = async ({ client }: BenchDaemon, ids: readonly string[]): Promise<number> => {
  const began = performance.now()
  await Promise.all(ids.map(id => client.cancel(id)))
  for (const id of ids)
    while ((await client.wait(id, { timeoutMs: 50_000, signal: never })).completed_at === null);
  return performance.now() - began
}

const memory = async (): Promise<Figure[]> => {
  const daemon = await startDaemon({ DEPUTY_MAX_RUNNING: '100' })
  try {
    const ids = await startWaiting(daemon, 100)
    const shims = shimsOf(daemon.home.stateDir)
    const bytes = treeOf(shims).reduce((sum, process) => sum + proportionalMemory(process), 0)
    const cancelled = await cancelAll(daemon, ids)
    await sleep(IDLE_MS)
    return [
      { name: '100 running jobs: memory of one (PSS)', value: bytes / MIB / 100, unit: 'MiB' },
      { name: '100 running jobs: shims', value: shims.length, unit: '' },
      { name: '100 running jobs: cancelling all', value: cancelled, unit: 'ms' },
      { name: 'a minute later: shims', value: shimsOf(daemon.home.stateDir).length, unit: '' },
    ]
  } finally {
    await daemon.stop()
  }
}

/** Idle shims leave after at most a minute; this leaves a busy computer some more time. */
const IDLE_MS = 75_000

const cancelling = async (): Promise<Figure[]> => {
  const daemon = await startDaemon({ DEPUTY_MAX_RUNNING: '200' })
  try {
    const value = await cancelAll(daemon, await startWaiting(daemon, 200))
    return [{ name: '200 running jobs: cancelling all', value, unit: 'ms' }]
  } finally {
    await daemon.stop()
  }
}

const bursts = async (): Promise<Figure[]> => {
  const daemon = await startDaemon({ DEPUTY_MAX_RUNNING: String(AT_ONCE) })
  try {
    await several(20, () => job(daemon.client))
    return [...(await burst(daemon, 100)), ...(await burst(daemon, 1000))]
  } finally {
    await daemon.stop()
  }
}

const many: Bench['run'] = async () => [...(await bursts()), ...(await memory()), ...(await cancelling())]

export const manyBenches: Bench[] = [{ name: 'many', run: many }]
