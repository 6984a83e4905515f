import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Home } from '../src/config/home.ts'
import { newId } from '../src/jobs/ids.ts'
import { parseManifest } from '../src/jobs/manifest.ts'
import type { Store } from '../src/ports.ts'
import { openStore } from '../src/store/sqlite-store.ts'
import { startDaemon } from './daemon.ts'
import { startEcho } from './echo.ts'
import { type Bench, type Figure, percentile } from './figure.ts'
import { load } from './load.ts'
import { watchersBench } from './watchers.ts'

const MIB = 2 ** 20
const IN_FLIGHT = 64
const SUBMITS = 6000
const BODY = JSON.stringify({ task: 'echo hello', labels: { bench: 'submit' } })

/** Durable submits over the socket. One job holds the only slot, so that nothing but submitting happens. */
const submits: Bench['run'] = async () => {
  const daemon = await startDaemon({ DEPUTY_MAX_RUNNING: '1', DEPUTY_MAX_QUEUE: '1000000' })
  const echo = await startEcho()
  try {
    const { job_id } = await daemon.client.submit({ task: 'sleep 600', timeout: 900 })
    const submit = (socketPath: string, count: number) =>
      load({ socketPath, count, inFlight: IN_FLIGHT, next: () => ({ path: '/api/jobs', body: BODY }) })
    await submit(daemon.home.socket, 500)
    await submit(echo.socketPath, 500)
    const floor = await submit(echo.socketPath, SUBMITS)
    const ours = await submit(daemon.home.socket, SUBMITS)
    await daemon.client.cancel(job_id)
    return [
      {
        name: `durable submits a second, ${IN_FLIGHT} in flight`,
        value: ours.perSecond,
        unit: '/s',
        floor: { name: 'bare node:http echo', value: floor.perSecond },
        target: { of: 'value', at: 'least', limit: 1500 },
      },
      {
        name: `a submit among ${IN_FLIGHT}, p50`,
        value: percentile(ours.times, 0.5),
        unit: 'ms',
        floor: { name: 'bare node:http echo', value: percentile(floor.times, 0.5) },
      },
    ]
  } finally {
    await Promise.all([daemon.stop(), echo.stop()])
  }
}

/** Signs of life of many machines at once: tiny durable writes that share their flushes. */
const heartbeats: Bench['run'] = async () => {
  const directory = mkdtempSync(join(tmpdir(), 'deputy-bench-store-'))
  const store = openStore(join(directory, 'deputy.db'))
  try {
    const ids = await insertFinished(store, IN_FLIGHT)
    const rate = async (count: number, inFlight: number): Promise<number> => {
      const began = performance.now()
      let sent = 0
      const worker = async (): Promise<void> => {
        while (sent < count) await store.heartbeat(ids[sent++ % ids.length]!, Date.now())
      }
      await Promise.all(Array.from({ length: inFlight }, worker))
      return (count * 1000) / (performance.now() - began)
    }
    await rate(200, 1)
    const alone = await rate(1000, 1)
    const together = await rate(20_000, IN_FLIGHT)
    return [
      {
        name: `heartbeats stored a second, ${IN_FLIGHT} in flight`,
        value: together,
        unit: '/s',
        floor: { name: 'one flush for each', value: alone },
      },
    ]
  } finally {
    await store.close()
    rmSync(directory, { recursive: true, force: true })
  }
}

const FINISHED = 100_000

/** Looking at jobs when there are a hundred thousand of them. */
const lookups: Bench['run'] = async () => {
  let ids: string[] = []
  const fill = async (home: Home): Promise<void> => {
    const store = openStore(join(home.stateDir, 'deputy.db'))
    ids = await insertFinished(store, FINISHED)
    await store.close()
  }
  const daemon = await startDaemon({}, fill)
  const echo = await startEcho()
  try {
    const started = daemon.memory()
    const one = (socketPath: string, count: number, next: () => { path: string }) =>
      load({ socketPath, count, inFlight: 1, next })
    const someJob = () => ({ path: `/api/jobs/${ids[Math.floor(Math.random() * ids.length)]}` })
    const somePage = () => ({
      path: `/api/jobs?limit=20&cursor=${ids[Math.floor(Math.random() * ids.length)]}`,
    })
    for (const next of [someJob, somePage]) await one(daemon.home.socket, 300, next)
    const floor = (await one(echo.socketPath, 2000, someJob)).times
    const status = (await one(daemon.home.socket, 2000, someJob)).times
    const page = (await one(daemon.home.socket, 1000, somePage)).times
    const labelled = (
      await one(daemon.home.socket, 1000, () => ({ path: '/api/jobs?label=n%3D7&status=failed' }))
    ).times
    const echoed = (share: number) => ({ name: 'bare node:http echo', value: percentile(floor, share) })
    return [
      ...latency('status', status, echoed, 2),
      ...latency('page of 20', page, echoed, 5),
      ...latency('page by label and status', labelled, echoed, 5),
      {
        name: `resident memory with ${FINISHED} jobs, started`,
        value: started / MIB,
        unit: 'MB',
        floor: { name: 'bare node:http', value: echo.memory() / MIB },
      },
      { name: 'resident memory after 5,000 requests', value: daemon.memory() / MIB, unit: 'MB' },
    ]
  } finally {
    await Promise.all([daemon.stop(), echo.stop()])
  }
}

const latency = (
  what: string,
  times: readonly number[],
  floor: (share: number) => { name: string; value: number },
  limit: number,
): Figure[] => [
  {
    name: `${what} among ${FINISHED} jobs, p50`,
    value: percentile(times, 0.5),
    unit: 'ms',
    floor: floor(0.5),
    target: { of: 'value', at: 'most', limit },
  },
  {
    name: `${what} among ${FINISHED} jobs, p99`,
    value: percentile(times, 0.99),
    unit: 'ms',
    floor: floor(0.99),
  },
]

/** Straight into the store, many at once, so that a hundred thousand take seconds. */
export const insertFinished = async (store: Store, count: number): Promise<string[]> => {
  const ids: string[] = []
  const at = Date.now() - 3_600_000
  while (ids.length < count) {
    const batch = Array.from({ length: Math.min(2000, count - ids.length) }, (_, i) =>
      newId(at + ids.length + i),
    )
    await Promise.all(batch.map((id, i) => insertOne(store, id, at + ids.length + i, i)))
    ids.push(...batch)
  }
  return ids
}

const insertOne = async (store: Store, id: string, at: number, n: number): Promise<void> => {
  await store.insertJob({
    id,
    manifest: parseManifest({ task: `echo ${n}`, labels: { n: String(n % 10) } }),
    manifestHash: id,
    title: `echo ${n}`,
    runtime: 'sandbox',
    origin: 'bench',
    createdAt: at,
    timeoutSeconds: 60,
  })
  const to = n % 3 === 0 ? 'failed' : 'cancelled'
  await store.move(id, to, { completedAt: at + 5, startedAt: at + 1 }, { at: at + 5, data: {} })
}

export const httpBenches: Bench[] = [
  { name: 'submits', run: submits },
  { name: 'heartbeats', run: heartbeats },
  { name: 'lookups', run: lookups },
  watchersBench,
]
