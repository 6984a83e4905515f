import { AppError } from '../jobs/errors.ts'
import type { Job } from '../jobs/job.ts'
import type { Outcome, StopReason } from '../ports.ts'
import type { EngineContext } from './engine-context.ts'
import type { JobSink } from './job-sink.ts'

/**
 * The daemon's own clock over a run. The machine keeps the timeout itself and is normally first; this one is for
 * machines that do not answer. All timers are monotonic: setting the wall clock ends no job and saves none.
 */
export interface Watchdog {
  started(): void
  watch(sink: JobSink): void
  /** Resolves when even a stopped run did not come back. */
  readonly gaveUp: Promise<Outcome>
  end(): void
}

/** How much later than the machine the daemon acts, and how long it then waits for the run to come back. */
const SLACK_MS = 10_000
const PATIENCE_MS = 60_000

export const watchdog = (context: EngineContext, job: Job, stop: AbortController): Watchdog => {
  const { config, clock } = context
  const timers = new Set<NodeJS.Timeout>()
  let giveUp: (outcome: Outcome) => void
  const gaveUp = new Promise<Outcome>(resolve => {
    giveUp = resolve
  })
  const later = (ms: number, action: () => void): void => {
    timers.add(setTimeout(action, ms))
  }
  const graceMs = config.supervision.grace * 1000

  const ask = (reason: StopReason): void => {
    if (!stop.signal.aborted) stop.abort(reason)
  }
  stop.signal.addEventListener('abort', () => {
    later(graceMs + PATIENCE_MS, () =>
      giveUp({ kind: 'lost', error: noAnswer(stop.signal.reason as StopReason) }),
    )
  })

  const started = (): void => {
    const ran = job.startedAt === null ? 0 : Math.max(0, clock.now() - job.startedAt)
    const left = Math.max(0, job.timeoutSeconds * 1000 - ran)
    later(left + graceMs + SLACK_MS, () => ask({ kind: 'timeout', by: 'daemon' }))
  }
  if (job.state === 'running') started()

  return {
    started,
    gaveUp,
    watch: sink => {
      const threshold = config.supervision.heartbeat * 1000
      const timer = setInterval(() => {
        const silence = sink.silence()
        if (silence !== undefined && silence > threshold) ask({ kind: 'stale', by: 'daemon' })
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
  new AppError('timeout', `Its machine did not answer when the job was to be ended (${reason.kind}).`, {
    hint: 'The machine is being destroyed. What the job had printed until then is kept.',
  })
