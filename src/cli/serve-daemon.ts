import { runDaemon } from '../daemon/run-daemon.ts'
import type { Context } from './context.ts'
import { reportError } from './report-error.ts'

/**
 * Runs the daemon of this home until it stops, then exits. Returns only when another daemon is running. This file is
 * bundled with all that it loads, with classes of its own: errors are reported here and never thrown to the caller.
 */
export const serve = async (
  context: Pick<Context, 'home' | 'env' | 'err' | 'errColors'>,
): Promise<'another'> => {
  try {
    const end = await runDaemon({ home: context.home, env: context.env })
    if (end === 'another') return end
  } catch (error) {
    process.exit(reportError(context, error))
  }
  // Everything is closed by now. Exit, so that a connection that is slow to close does not keep the process.
  process.exit(0)
}
