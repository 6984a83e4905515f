import { requireProcessLimits } from '../config/process-limits.ts'
import { AppError } from '../jobs/errors.ts'
import type { Context } from './context.ts'
import { reportError } from './report-error.ts'

/** Becomes the daemon of this home and ends the process with it. Returns only when there is a daemon already. */
export const serve = async (context: Pick<Context, 'home' | 'env' | 'errColors'>): Promise<'another'> => {
  try {
    // Before the daemon is loaded, which takes most of what is needed.
    requireProcessLimits({ running: 0 })
    const { runDaemon } = await import('../daemon/run.ts')
    const end = await runDaemon({ home: context.home, env: context.env })
    if (end === 'another') return end
  } catch (error) {
    process.exit(reportError(context, error))
  }
  // Everything is let go of by now; a connection that is slow to close must not keep the process.
  process.exit(0)
}

export const alreadyServed = ({ home }: Pick<Context, 'home'>): AppError =>
  new AppError('conflict', `Another daemon serves ${home.stateDir} already.`, {
    hint: 'Look at it with: deputy daemon status. End it with: deputy daemon stop',
  })
