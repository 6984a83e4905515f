import type { ActiveJobs } from './active-jobs.ts'
import type { EngineContext } from './engine-context.ts'
import { createKnownTime } from './known-time.ts'
import type { Disposal } from './machine-disposal.ts'
import type { Pool } from './machine-pool.ts'
import { createJobSweep } from './sweep-jobs.ts'
import { createMachineSweep } from './sweep-machines.ts'

export interface Sweeper {
  /** Runs all cleanup tasks once: reconciles records with existing machines and deletes what has expired. */
  sweep(): Promise<void>
  start(): void
}

const JOBS_INTERVAL_MS = 60_000
/** Upper bound on how late a queue timeout takes effect. */
const OVERDUE_INTERVAL_MS = 1_000
const BLOBS_INTERVAL_MS = 3_600_000

export const createSweeper = (
  context: EngineContext,
  { activeJobs, disposal, pool }: { activeJobs: ActiveJobs; disposal: Disposal; pool: Pool },
): Sweeper => {
  const { clock, config, log } = context
  const time = createKnownTime(context)
  const sweepMachines = createMachineSweep(context, { activeJobs, disposal, time })
  const { failStranded, failOverdue, sweepJobs, sweepBlobs } = createJobSweep(context, time)

  /** Limits how often a task runs that reads all stored jobs or blobs. */
  const atMostEvery = (ms: number, task: () => Promise<void>): (() => Promise<void>) => {
    let next = Number.NEGATIVE_INFINITY
    return async () => {
      if (clock.monotonic() < next) return
      next = clock.monotonic() + ms
      await task()
    }
  }

  const refillPool = async (): Promise<void> => pool.refill()
  const restoreBallast = async (): Promise<void> => void context.ballast?.restore()
  const tasks = [
    time.update,
    restoreBallast,
    sweepMachines,
    refillPool,
    failStranded,
    atMostEvery(JOBS_INTERVAL_MS, sweepJobs),
    atMostEvery(BLOBS_INTERVAL_MS, sweepBlobs),
  ]
  const attempt = (task: () => Promise<void>): Promise<void> =>
    task().catch(error => {
      if (!context.closing.aborted) log.error({ err: error }, 'sweep failed')
    })
  const sweep = async (): Promise<void> => {
    for (const task of tasks) await attempt(task)
  }

  return {
    sweep,
    start: () => {
      let busy = false
      const tick = async (): Promise<void> => {
        if (busy) return
        busy = true
        await sweep().finally(() => {
          busy = false
        })
      }
      const timers = [
        setInterval(tick, config.supervision.cleanup * 1000),
        setInterval(() => void attempt(failOverdue), OVERDUE_INTERVAL_MS),
      ]
      context.closing.addEventListener('abort', () => timers.forEach(clearInterval), { once: true })
      void tick()
    },
  }
}
