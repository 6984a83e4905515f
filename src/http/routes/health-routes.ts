import { z } from 'zod'
import type { Deputy } from '../../engine/deputy.ts'
import { toAppError } from '../../jobs/errors.ts'
import type { Readiness } from '../../ports.ts'
import type { ControlDeps } from '../deps.ts'
import { json, text } from '../respond.ts'
import { type Route, route } from '../route.ts'
import { readySchema } from '../views.ts'

export const healthRoutes = ({ deputy, metrics, closing }: ControlDeps): Route[] => {
  const runtimes = cachedDoctor(deputy, closing)
  return [
    route({
      method: 'GET',
      path: '/livez',
      tag: 'health',
      open: true,
      summary: 'Check that the daemon answers; needs no token',
      responses: {
        200: { description: 'The daemon is alive', schema: z.looseObject({ status: z.literal('ok') }) },
      },
      handle: () => json({ status: 'ok' }),
    }),

    route({
      method: 'GET',
      path: '/readyz',
      tag: 'health',
      summary: 'Check that the store works and at least one runtime takes jobs',
      responses: {
        200: { description: 'The daemon takes jobs', schema: readySchema },
        503: { description: 'The daemon takes no jobs, with the reasons', schema: readySchema },
      },
      handle: async () => {
        const [store, found] = await Promise.all([checkStore(deputy), runtimes()])
        const ready = store.ready && found.some(runtime => runtime.ready)
        return json({ ready, store, runtimes: found }, ready ? 200 : 503)
      },
    }),

    route({
      method: 'GET',
      path: '/metrics',
      tag: 'health',
      summary: 'Metrics in the Prometheus text format',
      responses: { 200: { description: 'The metrics', type: 'text/plain' } },
      handle: async () => text(await metrics.render(), 'text/plain; version=0.0.4; charset=utf-8'),
    }),
  ]
}

const checkStore = async (deputy: Deputy): Promise<{ ready: boolean; message: string }> => {
  try {
    await deputy.stats()
    return { ready: true, message: 'the database answers' }
  } catch (error) {
    return { ready: false, message: toAppError(error).message }
  }
}

const CHECKED_MS = 30_000

/** Health probes come every few seconds, and checking a runtime may start processes; so the answer is cached. */
const cachedDoctor = (deputy: Deputy, closing: AbortSignal): (() => Promise<readonly Readiness[]>) => {
  let latest: { readonly at: number; readonly answer: Promise<readonly Readiness[]> } | undefined
  return () => {
    const now = performance.now()
    if (latest === undefined || now - latest.at > CHECKED_MS) {
      const answer = deputy.doctor(closing).catch(() => [])
      latest = { at: now, answer }
    }
    return latest.answer
  }
}
