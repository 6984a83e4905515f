import { setMaxListeners } from 'node:events'
import { request } from 'node:http'
import type { Client } from '../src/client/daemon-client.ts'
import { type BenchDaemon, startDaemon } from './daemon.ts'
import { type Bench, percentile } from './figure.ts'

const WATCHERS = 200
const LINES = 60_000
const ROUNDS = 3
const QUICK_ROUNDS = 1
const never = new AbortController().signal
setMaxListeners(0, never)
/** Prints in bursts for some seconds, as a build does. */
const TASK = `for i in $(seq ${LINES}); do echo "line $i of the output of a busy job"; [ $((i % 300)) = 0 ] && sleep 0.01; done; true`

/** Two hundred watchers of one busy job: they all see everything, and the job does not get slower by them. */
const watchers: Bench['run'] = async quick => {
  const rounds = quick ? QUICK_ROUNDS : ROUNDS
  const daemon = await startDaemon({ DEPUTY_MAX_RUNNING: '1' })
  try {
    await alone(daemon.client)
    const floor: number[] = []
    const ours: number[] = []
    let complete = 0
    const before = daemon.memory()
    let highest = before
    for (let i = 0; i < rounds; i++) {
      floor.push(await alone(daemon.client))
      const watched = await withWatchers(daemon)
      ours.push(watched.seconds)
      complete += watched.complete
      highest = Math.max(highest, watched.highest)
    }
    return [
      {
        name: `a busy job with ${WATCHERS} watchers`,
        value: percentile(ours, 0.5),
        unit: 's',
        floor: { name: 'without', value: percentile(floor, 0.5) },
        target: { of: 'ratio', at: 'most', limit: 1.25 },
      },
      {
        name: 'watchers that saw everything',
        value: complete / rounds,
        unit: '',
        target: { of: 'value', at: 'least', limit: WATCHERS },
      },
      { name: `${WATCHERS} watchers: growth of the daemon`, value: (highest - before) / 2 ** 20, unit: 'MB' },
    ]
  } finally {
    await daemon.stop()
  }
}

const alone = async (client: Client): Promise<number> => {
  const { job_id } = await client.submit({ task: TASK, timeout: 300 })
  return runningSeconds(client, job_id)
}

const withWatchers = async ({ client, home, memory }: BenchDaemon) => {
  const { job_id } = await client.submit({ task: TASK, timeout: 300 })
  let highest = 0
  const look = setInterval(() => {
    highest = Math.max(highest, memory())
  }, 50)
  const seen = await Promise.all(
    Array.from({ length: WATCHERS }, () => watchToEnd(home.socket, `/api/jobs/${job_id}/output/stream`)),
  )
  clearInterval(look)
  const seconds = await runningSeconds(client, job_id)
  const { output_bytes } = await client.get(job_id)
  return { seconds, highest, complete: seen.filter(cursor => cursor === output_bytes).length }
}

/** As the job's own machine measured it. */
const runningSeconds = async (client: Client, id: string): Promise<number> => {
  for (;;) {
    const view = await client.wait(id, { timeoutMs: 50_000, signal: never })
    if (view.status !== 'success' && view.completed_at !== null)
      throw new Error(`the job ended as ${view.status}`)
    if (view.duration_seconds !== null) return view.duration_seconds
  }
}

/** The cheapest watcher there is: it keeps the end of what arrived, and gives the cursor it was told last. */
const watchToEnd = (socketPath: string, path: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const outgoing = request({ socketPath, path, agent: false }, response => {
      let tail = ''
      response.setEncoding('latin1')
      response.on('data', (chunk: string) => {
        tail = (tail + chunk).slice(-400)
      })
      response.on('end', () => resolve(Number(/id: (\d+):end/.exec(tail)?.[1] ?? Number.NaN)))
      response.on('error', reject)
    })
    outgoing.on('error', reject)
    outgoing.end()
  })

export const watchersBench: Bench = { name: 'watchers', quick: true, run: watchers }
