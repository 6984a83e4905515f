import type { Deputy, JobView } from '../engine/deputy.ts'
import { isTerminal, type JobState, STATES } from '../jobs/states.ts'
import type { Metrics } from './metrics.ts'

export interface JobMetrics {
  /** Resolves when it has let go. */
  close(): Promise<void>
}

/** What an operator wants to see of jobs and machines. Finished jobs are taken from the log of events. */
export const observeJobs = (metrics: Metrics, deputy: Deputy): JobMetrics => {
  const finished = metrics.counter('deputy_jobs_finished_total', 'Jobs that reached their end, since start.')
  const phases = metrics.histogram('deputy_job_phase_seconds', 'Time that finished jobs spent in each phase.')
  registerGauges(metrics, deputy)

  const stop = new AbortController()
  const follow = async (): Promise<void> => {
    for await (const { type, data, jobId } of deputy.followEvents({ signal: stop.signal })) {
      if (type !== 'state' || !isTerminal(data.to as JobState)) continue
      // It may have been deleted in the meantime.
      const job = await deputy.get(jobId).catch(() => undefined)
      if (job === undefined) continue
      finished.add({ status: job.status, runtime: job.runtime })
      for (const [phase, ms] of phasesOf(job)) phases.observe(ms / 1000, { phase, runtime: job.runtime })
    }
  }
  // The store closing under it, or failing, must not end the daemon; the counters then stand still.
  const following = follow().catch(() => {})

  return {
    close: () => {
      stop.abort()
      return following
    },
  }
}

const registerGauges = (metrics: Metrics, deputy: Deputy): void => {
  metrics.gauge('deputy_jobs', 'Jobs by state.', async () => {
    const { jobs } = await deputy.stats()
    return STATES.map(state => ({ labels: { state }, value: jobs[state] }))
  })
  metrics.gauge('deputy_queue_depth', 'Jobs that wait for a machine.', async () => [
    { value: (await deputy.stats()).jobs.pending },
  ])
  metrics.gauge('deputy_queue_oldest_seconds', 'How long the oldest of them has waited.', async () => [
    { value: (await deputy.stats()).oldest_pending_seconds },
  ])
  metrics.gauge('deputy_machines', 'Machines by runtime and state.', async () =>
    Object.entries((await deputy.stats()).machines).map(([key, value]) => {
      const [runtime = key, state = ''] = key.split('/')
      return { labels: { runtime, state }, value }
    }),
  )
}

/** The time in the queue is what is left before the start when the making of the machine is taken away. */
const phasesOf = (job: JobView): [string, number][] => {
  const until = Date.parse(job.started_at ?? job.completed_at ?? job.created_at)
  const waited = until - Date.parse(job.created_at) - (job.phases.provisioning ?? 0)
  return [['queued', Math.max(0, waited)], ...Object.entries(job.phases)]
}
