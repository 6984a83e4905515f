import { AppError } from '../jobs/errors.ts'
import type { EngineContext } from './engine-context.ts'
import { pause } from './pause.ts'

/**
 * Repeats a write while the disk is full or the database is locked; the provider keeps the data until then. Gives up
 * only when the daemon shuts down; the next daemon finds the same state.
 */
export const retryWrite = async <T>(
  { log, closing, ballast }: Pick<EngineContext, 'log' | 'closing' | 'ballast'>,
  write: () => Promise<T>,
  { mayUseBallast = false } = {},
): Promise<T> => {
  for (let attempt = 0; ; attempt++) {
    try {
      return await write()
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'unavailable' || closing.aborted) throw error
      if (mayUseBallast && isDiskFull(error) && ballast?.release() === true) continue
      if (attempt === 0) log.error({ err: error }, 'write failed; retrying until it succeeds')
      await pause(Math.min(5000, 250 * 2 ** attempt), closing)
    }
  }
}

const isDiskFull = ({ details }: AppError): boolean =>
  typeof details === 'object' && details !== null && 'isDiskFull' in details && details.isDiskFull === true
