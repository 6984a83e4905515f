import { z } from 'zod'
import { AppError } from '../jobs/errors.ts'
import { isId } from '../jobs/ids.ts'
import type { Call } from './route.ts'

/** The job a path names. What is no id is answered like an id that nobody has. */
export const jobId = ({ params }: Call): string => {
  const id = params.id ?? ''
  if (isId(id)) return id
  throw new AppError('not_found', `There is no job '${id.slice(0, 60)}': a job id is a UUID.`, {
    hint: 'deputy list shows the jobs there are.',
  })
}

/** Longer waits would be cut by proxies and by impatient clients. */
const MAX_WAIT_SECONDS = 300

export const waitSeconds = z
  .number()
  .min(0)
  .max(MAX_WAIT_SECONDS)
  .exactOptional()
  .describe('Answer at the change, or when this time is over')
