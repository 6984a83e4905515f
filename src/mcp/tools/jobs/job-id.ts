import { z } from 'zod'
import type { Deputy } from '../../../engine/deputy.ts'
import { resolveJobId } from '../../../jobs/short-ids.ts'

export const jobId = z.string().min(1).max(64)

/** Resolves a shortened id or `last`, which save tokens. */
export const fullJobId = (deputy: Deputy, text: string): Promise<string> =>
  resolveJobId(deputy, text, 'Call list_jobs.')
