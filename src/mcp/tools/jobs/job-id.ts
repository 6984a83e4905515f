import { z } from 'zod'
import type { Deputy } from '../../../engine/deputy.ts'
import { resolveJobId } from '../../../jobs/short-ids.ts'

export const jobId = z.string().min(1).max(64)

/** Accepts a shortened id and `last`: models copy ids, and a shorter one costs less. */
export const fullJobId = (deputy: Deputy, text: string): Promise<string> =>
  resolveJobId(deputy, text, 'Call list_jobs.')
