import { AppError } from '../jobs/errors.ts'
import type { EngineContext } from './engine-context.ts'
import { pause } from './pause.ts'

/**
 * A write the daemon owes to a job: repeated while the disk is full or locked, because the runtime still holds
 * what is to be written. Gives up only when the daemon leaves; its successor finds the same state again.
 */
export const durably = async <T>(
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
      if (attempt === 0) log.error({ err: error }, 'a write failed and is repeated until it works')
      await pause(Math.min(5000, 250 * 2 ** attempt), closing)
    }
  }
}

const isDiskFull = ({ details }: AppError): boolean =>
  typeof details === 'object' && details !== null && 'isDiskFull' in details && details.isDiskFull === true
