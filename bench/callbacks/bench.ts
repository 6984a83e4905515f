import { type Bench, type Figure, percentile } from '../figure.ts'
import { findExpress } from './express.ts'
import { post, rawLoad } from './raw-load.ts'
import { type ServerProcess, startServer } from './server-process.ts'

/** That run at once and report over and over. */
const MACHINES = 400
const REPORTS = 8000
/** Each ends once. */
const ENDS = 3000
const ROUNDS = 5
const IN_FLIGHT = 32
/** Ordinary lines of a build, 4 KB. */
const OUTPUT = Array.from({ length: 64 }, (_, n) =>
  `[${String(n).padStart(3)}] compiling module "some/where" with a few options…`.padEnd(62),
).join('\n')

interface Ours {
  readonly port: number
  readonly machines: readonly { readonly token: string; readonly job: string }[]
}

type Kind = 'heartbeat' | 'output' | 'complete'

/**
 * Reports of machines, beside Express with a map in memory, which is what they went to before. A heartbeat needs
 * no disk and shows the listener alone. Output and ends are answered when they are on disk, and forgotten by the peer
 * at its restart: the second one beside them is the least that answers for a report on disk.
 */
const callbacks: Bench['run'] = async () => {
  const express = findExpress()
  if (express === undefined)
    process.stderr.write('callbacks: Express could not be installed: its figures are left out\n')
  return [
    ...(await measure(['heartbeat', 'output'], MACHINES, express)),
    ...(await measure(['complete'], ENDS, express)),
  ]
}

const measure = async (
  kinds: readonly Kind[],
  jobs: number,
  express: string | undefined,
): Promise<Figure[]> => {
  const ours = await startServer<Ours>('./our-server.js', [String(jobs)])
  const ids = ours.said.machines.map(({ job }) => job)
  const bare = await startServer<{ port: number }>('./sqlite-server.js', ids)
  const peer = express && (await startServer<{ port: number }>('./express-server.js', [express, ...ids]))
  try {
    const figures: Figure[] = []
    // A server that has just started is slow, each in its own way.
    for (const kind of ['heartbeat', 'output'] as const) {
      await meter(ours).measure(ourRequests(kind, ours.said, 0), jobs)
      if (peer) await meter(peer).measure(oldRequests(kind, ids, 0), jobs)
      await meter(bare).measure(bareRequests(kind, ids, 0), jobs)
    }
    for (const kind of kinds) {
      const mine = meter(ours)
      const theirs = peer ? meter(peer) : undefined
      const least = kind === 'heartbeat' ? undefined : meter(bare)
      const count = kind === 'complete' ? jobs / ROUNDS : REPORTS
      // By turns, so that whatever else the computer does hits all of them.
      for (let round = 0; round < ROUNDS; round++) {
        const from = jobs + round * count
        await mine.measure(ourRequests(kind, ours.said, from), count)
        await theirs?.measure(oldRequests(kind, ids, from), count)
        await least?.measure(bareRequests(kind, ids, from), count)
      }
      figures.push(...figuresOf(kind, { mine, theirs, least }))
    }
    return figures
  } finally {
    await Promise.all([ours.stop(), bare.stop(), peer ? peer.stop() : undefined])
  }
}

interface Measured {
  readonly mine: Meter
  readonly theirs: Meter | undefined
  readonly least: Meter | undefined
}

const figuresOf = (kind: Kind, { mine, theirs, least }: Measured): Figure[] => {
  const { name, besidePeer, besideBare } = KINDS[kind]
  const rate = { name, value: mine.perSecond(), unit: '/s' }
  const cost = { name: `${name}, processor`, value: mine.microseconds(), unit: 'µs' }
  const beside = (other: string, meter: Meter | undefined, limit: number | undefined): Figure[] =>
    meter === undefined || limit === undefined
      ? []
      : [
          {
            ...rate,
            floor: { name: other, value: meter.perSecond() },
            target: { of: 'ratio', at: 'least', limit },
          },
          { ...cost, floor: { name: other, value: meter.microseconds() } },
        ]
  return [...beside(PEER, theirs, besidePeer), ...beside(BARE, least, besideBare)]
}

/** What holds with a margin, on a busy disk, too: of the rate of the peer, and of the bare server where reports go to disk. */
const KINDS: Readonly<Record<Kind, { name: string; besidePeer: number; besideBare?: number }>> = {
  heartbeat: { name: 'machine report: heartbeat', besidePeer: 2 },
  output: { name: 'machine report: 4 KB of output, durable', besidePeer: 0.7, besideBare: 0.4 },
  complete: { name: 'machine report: the end of a job, durable', besidePeer: 0.3, besideBare: 0.2 },
}

const PEER = 'Express with a map'
const BARE = 'node:http and SQLite alone'

/** Rate and cost of the requests to one server; the cost tells the truth on a busy computer, too. */
type Meter = ReturnType<typeof meter>

const meter = ({ said, processor }: ServerProcess<{ readonly port: number }>) => {
  const rates: number[] = []
  let seconds = 0
  let requests = 0
  return {
    measure: async (next: (n: number) => Buffer, count: number): Promise<void> => {
      const before = processor()
      rates.push(await rawLoad({ port: said.port, count, inFlight: IN_FLIGHT, next }))
      seconds += processor() - before
      requests += count
    },
    perSecond: () => percentile(rates, 0.5),
    microseconds: () => (seconds / requests) * 1e6,
  }
}

/** All made beforehand, as those for the others are: making one is not what is measured. */
const ourRequests = (kind: Kind, { machines }: Ours, from: number): ((n: number) => Buffer) => {
  const make = ({ token, job }: Ours['machines'][number], turn: number): Buffer => {
    const headers = { Authorization: `Bearer ${token}` }
    if (kind === 'heartbeat') return post(`/guest/v1/jobs/${job}/heartbeat`, headers, NOTHING)
    if (kind === 'complete')
      return post(`/callback/${job}/complete`, { ...headers, ...JSON_TYPE }, completion(job))
    const offset = turn * Buffer.byteLength(OUTPUT)
    return post(
      `/guest/v1/jobs/${job}/output?stream=stdout&offset=${offset}`,
      { ...headers, 'Content-Type': 'application/octet-stream' },
      Buffer.from(OUTPUT),
    )
  }
  const { length } = machines
  if (kind !== 'output') {
    const requests = machines.map(machine => make(machine, 0))
    return n => requests[(n + from) % length]!
  }
  const frames = Array.from({ length: REPORTS }, (_, n) =>
    make(machines[n % length]!, Math.floor((n + from) / length)),
  )
  return n => frames[n]!
}

const oldRequests = (kind: Kind, ids: readonly string[], from: number): ((n: number) => Buffer) => {
  const requests = ids.map(id => {
    if (kind === 'heartbeat') return post(`/callback/${id}/heartbeat`, {}, NOTHING)
    if (kind === 'complete') return post(`/callback/${id}/complete`, JSON_TYPE, completion(id))
    return post(
      `/callback/${id}/status`,
      JSON_TYPE,
      json({ job_id: id, progress: 'compiling', output: OUTPUT }),
    )
  })
  return n => requests[(n + from) % ids.length]!
}

const bareRequests = (kind: Kind, ids: readonly string[], from: number): ((n: number) => Buffer) => {
  const requests = ids.map(id =>
    kind === 'complete'
      ? post(`/callback/${id}/complete`, JSON_TYPE, completion(id))
      : post(`/callback/${id}/output`, {}, Buffer.from(OUTPUT)),
  )
  return n => requests[(n + from) % ids.length]!
}

const NOTHING = Buffer.alloc(0)
const JSON_TYPE = { 'Content-Type': 'application/json' }
const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))
const completion = (id: string): Buffer =>
  json({ job_id: id, status: 'success', exit_code: 0, output: OUTPUT, duration_seconds: 12 })

export const callbacksBench: Bench = { name: 'callbacks', run: callbacks }
