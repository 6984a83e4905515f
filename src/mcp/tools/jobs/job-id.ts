import { z } from 'zod'

export const jobId = z.string().min(1).max(64)
