import { z } from 'zod'
import { AppError } from '../jobs/errors.ts'
import { isId } from '../jobs/ids.ts'
import type { Call } from './route.ts'

/** The job id in the path. An invalid id is answered like an unknown one. */
export const jobId = ({ params }: Call): string => {
  const id = params.id ?? ''
  if (isId(id)) return id
  throw new AppError('not_found', `No job '${id.slice(0, 60)}': a job id is a UUID.`, {
    hint: 'deputy list shows all jobs.',
  })
}

/** Proxies and clients would cut longer waits. */
const MAX_WAIT_SECONDS = 300

export const waitSeconds = z
  .number()
  .min(0)
  .max(MAX_WAIT_SECONDS)
  .exactOptional()
  .describe('Answer when the status changes, or after this time')
