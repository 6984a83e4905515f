import type { Deputy, JobView } from '../engine/deputy.ts'
import { isTerminal, type JobState, STATES } from '../jobs/states.ts'
import type { Metrics } from './metrics.ts'

export interface JobMetrics {
  /** Stops following events and waits until that has ended. */
  close(): Promise<void>
}

/** Metrics of jobs and machines. Finished jobs are counted from the event log. */
export const observeJobs = (metrics: Metrics, deputy: Deputy): JobMetrics => {
  const finished = metrics.counter('deputy_jobs_finished_total', 'Jobs finished since the daemon started.')
  const phases = metrics.histogram('deputy_job_phase_seconds', 'Time that finished jobs spent in each phase.')
  registerGauges(metrics, deputy)
  registerFleet(metrics, deputy)

  const stop = new AbortController()
  const follow = async (): Promise<void> => {
    for await (const { type, data, jobId } of deputy.followEvents({ signal: stop.signal })) {
      if (type !== 'state' || !isTerminal(data.to as JobState)) continue
      // The job may have been deleted in the meantime.
      const job = await deputy.get(jobId).catch(() => undefined)
      if (job === undefined) continue
      finished.add({ status: job.status, runtime: job.runtime })
      for (const [phase, ms] of phasesOf(job)) phases.observe(ms / 1000, { phase, runtime: job.runtime })
    }
  }
  // A store that closes or fails must not end the daemon; the counters stop in that case.
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
  metrics.gauge('deputy_queue_depth', 'Jobs waiting for a machine.', async () => [
    { value: (await deputy.stats()).jobs.pending },
  ])
  metrics.gauge('deputy_queue_oldest_seconds', 'Waiting time of the oldest pending job.', async () => [
    { value: (await deputy.stats()).oldest_pending_seconds },
  ])
  metrics.gauge('deputy_machines', 'Machines by runtime and state.', async () =>
    Object.entries((await deputy.stats()).machines).map(([key, value]) => {
      const [runtime = key, state = ''] = key.split('/')
      return { labels: { runtime, state }, value }
    }),
  )
}

const registerFleet = (metrics: Metrics, deputy: Deputy): void =>
  metrics.gauge('deputy_daemons', 'Daemons that share the database, by state.', async () => {
    const states = (await deputy.daemons()).map(({ state }) => state)
    return [...new Set(states)].map(state => ({
      labels: { state },
      value: states.filter(other => other === state).length,
    }))
  })

/** Time in the queue = time until the start, minus the time for provisioning. */
const phasesOf = (job: JobView): [string, number][] => {
  const until = Date.parse(job.started_at ?? job.completed_at ?? job.created_at)
  const waited = until - Date.parse(job.created_at) - (job.phases.provisioning ?? 0)
  return [['queued', Math.max(0, waited)], ...Object.entries(job.phases)]
}
