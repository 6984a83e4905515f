import { requireProcessLimits } from '../config/process-limits.ts'
import { AppError } from '../jobs/errors.ts'
import type { Context } from './context.ts'
import { reportError } from './report-error.ts'

/** Runs the daemon of this home until it stops, then exits. Returns only when another daemon is running. */
export const serve = async (
  context: Pick<Context, 'home' | 'env' | 'err' | 'errColors'>,
): Promise<'another'> => {
  try {
    // Before the daemon is loaded, which takes most of what is needed.
    requireProcessLimits({ running: 0 })
    const { runDaemon } = await import('../daemon/run-daemon.ts')
    const end = await runDaemon({ home: context.home, env: context.env })
    if (end === 'another') return end
  } catch (error) {
    process.exit(reportError(context, error))
  }
  // Everything is closed by now. Exit, so that a connection that is slow to close does not keep the process.
  process.exit(0)
}

export const alreadyServed = ({ home }: Pick<Context, 'home'>): AppError =>
  new AppError('conflict', `Another daemon is already running for ${home.stateDir}.`, {
    hint: 'Check it: deputy daemon status. Stop it: deputy daemon stop',
  })
