import { AppError } from '../jobs/errors.ts'
import type { Job } from '../jobs/job.ts'
import type { Outcome, StopReason } from '../ports.ts'
import type { EngineContext } from './engine-context.ts'
import type { JobSink } from './job-sink.ts'

/**
 * Stops a run from the daemon's side. Normally the machine enforces the timeout first; the watchdog covers machines
 * that do not answer. All timers are monotonic, so setting the wall clock neither ends nor prolongs a job.
 */
export interface Watchdog {
  started(): void
  watch(sink: JobSink): void
  /** Resolves when a stopped run does not return. */
  readonly gaveUp: Promise<Outcome>
  end(): void
}

/**
 * How much later than the machine the daemon enforces the timeout, and how long it then waits for the run to return.
 */
const SLACK_MS = 10_000
const GIVE_UP_MS = 60_000

export const createWatchdog = (context: EngineContext, job: Job, stop: AbortController): Watchdog => {
  const { config, clock } = context
  const timers = new Set<NodeJS.Timeout>()
  let giveUp: (outcome: Outcome) => void
  const gaveUp = new Promise<Outcome>(resolve => {
    giveUp = resolve
  })
  const after = (ms: number, action: () => void): void => {
    timers.add(setTimeout(action, ms))
  }
  const graceMs = config.supervision.grace * 1000

  const stopJob = (reason: StopReason): void => {
    if (!stop.signal.aborted) stop.abort(reason)
  }
  stop.signal.addEventListener('abort', () => {
    after(graceMs + GIVE_UP_MS, () =>
      giveUp({ kind: 'lost', error: noAnswer(stop.signal.reason as StopReason) }),
    )
  })

  const started = (): void => {
    const ran = job.startedAt === null ? 0 : Math.max(0, clock.now() - job.startedAt)
    const left = Math.max(0, job.timeoutSeconds * 1000 - ran)
    after(left + graceMs + SLACK_MS, () => stopJob({ kind: 'timeout', by: 'daemon' }))
  }
  if (job.state === 'running') started()

  return {
    started,
    gaveUp,
    watch: sink => {
      const threshold = config.supervision.heartbeat * 1000
      const timer = setInterval(() => {
        const silence = sink.msSinceHeartbeat()
        if (silence !== undefined && silence > threshold) stopJob({ kind: 'stale', by: 'daemon' })
      }, threshold / 4)
      timer.unref()
      timers.add(timer)
    },
    end: () => {
      for (const timer of timers) clearTimeout(timer)
    },
  }
}

const noAnswer = (reason: StopReason): AppError =>
  new AppError('timeout', `The machine did not answer the request to stop the job (${reason.kind}).`, {
    hint: 'The machine is being destroyed. The output so far is kept.',
  })
