import { z } from 'zod'
import type { DaemonInfo as DaemonView, SampleView } from '../../client/daemon-info.ts'
import type { Stats } from '../../engine/deputy.ts'
import { AppError } from '../../jobs/errors.ts'
import type { Sample } from '../../jobs/sample.ts'
import { isTerminal, STATES } from '../../jobs/states.ts'
import type { Readiness } from '../../ports.ts'
import { readBody } from '../body.ts'
import type { ControlDeps, DaemonInfo } from '../deps.ts'
import { json, noContent } from '../respond.ts'
import { queryRoute, type Route, route } from '../route.ts'
import { withSignal } from '../signal.ts'
import { daemonListSchema, daemonSchema, doctorSchema, historySchema, settingsSchema } from '../views.ts'

const stopSchema = z.strictObject({
  if_idle: z.boolean().default(false).describe('Refuse when a job waits or runs'),
})

const drainSchema = z.strictObject({
  draining: z.boolean().default(true).describe('False: claim jobs again'),
})

const ids = z.array(z.string())
const nodesChangeSchema = z.looseObject({ added: ids, removed: ids, changed: ids, restart: ids })

export const daemonRoutes = ({ deputy, daemon, explainConfig, closing }: ControlDeps): Route[] => [
  route({
    method: 'GET',
    path: '/api/daemon',
    tag: 'daemon',
    summary: 'Show version, address and state of the daemon',
    responses: { 200: { description: 'The daemon', schema: daemonSchema } },
    handle: async () => json(daemonView(daemon, await deputy.stats())),
  }),

  route({
    method: 'GET',
    path: '/api/daemons',
    tag: 'daemon',
    summary: 'List the daemons that share the database; none with SQLite',
    responses: { 200: { description: 'The daemons', schema: daemonListSchema } },
    handle: async () => json({ daemons: await deputy.daemons() }),
  }),

  route({
    method: 'POST',
    path: '/api/daemons/{name}/drain',
    tag: 'daemon',
    summary: 'Stop the claims of a daemon, or resume them; its jobs keep running',
    body: { description: 'Whether to drain', type: 'application/json', schema: drainSchema },
    responses: {
      204: { description: 'The daemon claims no more jobs, or claims them again' },
      404: { description: 'No such daemon' },
    },
    handle: async call => {
      const { draining } = await readBody(call, drainSchema, 1024)
      await deputy.drainDaemon(call.params.name ?? '', draining)
      return noContent()
    },
  }),

  route({
    method: 'POST',
    path: '/api/daemon/stop',
    tag: 'daemon',
    summary: 'Stop the daemon; jobs keep running and the next daemon finds them',
    body: { description: 'Nothing, or conditions', type: 'application/json', schema: stopSchema },
    responses: {
      202: { description: 'The daemon is stopping', schema: z.looseObject({ stopping: z.boolean() }) },
      409: { description: 'The daemon is not idle' },
    },
    handle: async call => {
      const { if_idle } = await readBody(call, stopSchema, 1024)
      if (if_idle) refuseWhenBusy(await deputy.stats())
      daemon.stop()
      return json({ stopping: true }, 202)
    },
  }),

  route({
    method: 'POST',
    path: '/api/daemon/reload',
    tag: 'daemon',
    summary: 'Reload the cluster section of the configuration; jobs keep running',
    responses: {
      200: {
        description: 'Added, removed and changed nodes, and other settings that need a restart',
        schema: nodesChangeSchema,
      },
      400: { description: 'Invalid configuration; nothing changed' },
    },
    handle: () => json(daemon.reload()),
  }),

  route({
    method: 'GET',
    path: '/api/doctor',
    tag: 'daemon',
    summary: 'Check every runtime: what works, what is missing, what fixes it',
    responses: { 200: { description: 'The checks', schema: doctorSchema } },
    handle: async call => checks(await withSignal(call, closing, signal => deputy.doctor(signal))),
  }),

  route({
    method: 'POST',
    path: '/api/doctor/probe',
    tag: 'daemon',
    summary: 'Check every runtime, with a throw-away machine if necessary; takes minutes',
    responses: { 200: { description: 'The checks', schema: doctorSchema } },
    handle: async call => checks(await withSignal(call, closing, signal => deputy.probe(signal))),
  }),

  queryRoute({
    method: 'GET',
    path: '/api/history',
    tag: 'daemon',
    summary: 'Show throughput, waits, durations and used slots, minute by minute',
    query: z.strictObject({
      hours: z
        .number()
        .min(0.1)
        .max(7 * 24)
        .exactOptional()
        .describe('1 by default; a week is kept'),
    }),
    responses: { 200: { description: 'The minutes in which something happened', schema: historySchema } },
    handle: async ({ query: { hours = 1 } }) => {
      const samples = await deputy.history(Date.now() - hours * 3_600_000)
      return json({ samples: samples.map(sampleView) })
    },
  }),

  route({
    method: 'GET',
    path: '/api/config',
    tag: 'daemon',
    summary: 'List every setting with its value and origin; no secrets',
    responses: { 200: { description: 'The settings', schema: settingsSchema } },
    handle: () => json({ settings: explainConfig() }),
  }),
]

const checks = (runtimes: readonly Readiness[]): Response =>
  json({ ready: runtimes.some(runtime => runtime.ready), runtimes })

const sampleView = ({ at, ended, wait, duration, slots, pending }: Sample): SampleView => ({
  at: new Date(at).toISOString(),
  ended,
  wait_ms: wait,
  duration_ms: duration,
  slots,
  pending,
})

const daemonView = (daemon: DaemonInfo, stats: Stats): DaemonView => ({
  pid: process.pid,
  version: daemon.version,
  socket: daemon.socket,
  url: daemon.url(),
  home: daemon.home,
  started_at: new Date(daemon.startedAt).toISOString(),
  idle: busyJobs(stats) === 0,
  jobs: stats.jobs,
  last_day: stats.last_day,
})

const busyJobs = ({ jobs }: Stats): number =>
  STATES.filter(state => !isTerminal(state)).reduce((sum, state) => sum + jobs[state], 0)

const refuseWhenBusy = (stats: Stats): void => {
  const busy = busyJobs(stats)
  if (busy > 0)
    throw new AppError(
      'conflict',
      `The daemon is not idle: ${busy} ${busy === 1 ? 'job waits or runs' : 'jobs wait or run'}.`,
      {
        hint: 'Wait for them (deputy list), or stop it anyway: deputy daemon stop',
      },
    )
}
