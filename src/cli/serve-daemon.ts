import { AppError } from '../jobs/errors.ts'
import type { Context } from './context.ts'

/** Becomes the daemon of this home. Resolves with `another` when there is one already. */
export const serve = async (context: Pick<Context, 'home' | 'env'>): Promise<'stopped' | 'another'> => {
  const { runDaemon } = await import('../daemon/run.ts')
  return runDaemon({ home: context.home, env: context.env })
}

export const alreadyServed = ({ home }: Pick<Context, 'home'>): AppError =>
  new AppError('conflict', `Another daemon serves ${home.stateDir} already.`, {
    hint: 'Look at it with: deputy daemon status. End it with: deputy daemon stop',
  })
