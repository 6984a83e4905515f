import { z } from 'zod'
import type { JobSummary } from '../../../engine/deputy.ts'
import { STATES } from '../../../jobs/states.ts'
import { defineTool, reads } from '../../tool.ts'
import { describeSummary, prune } from './describe-job.ts'

const DEFAULT_LIMIT = 20
/** Size limit of a page, for each job in it. */
const BYTES_PER_JOB = 295

export const listJobs = defineTool({
  name: 'list_jobs',
  title: 'List jobs',
  description: 'Jobs of all clients, newest first.',
  annotations: reads(),
  input: z.strictObject({
    status: z.enum(STATES).optional(),
    label: z.string().min(1).max(320).optional().describe('name or name=value'),
    limit: z.number().int().min(1).max(100).optional(),
    cursor: z.string().max(512).optional(),
  }),
  run: async ({ status, label, limit = DEFAULT_LIMIT, cursor }, { deputy }) => {
    const page = await deputy.list({
      limit,
      ...(status !== undefined && { status }),
      ...(label !== undefined && { label }),
      ...(cursor !== undefined && { cursor }),
    })
    return {
      data: {
        jobs: fitting(page.jobs),
        ...prune({
          next_cursor: page.next_cursor,
          next: page.next_cursor === null ? null : 'More: call again with cursor: next_cursor.',
        }),
      },
    }
  },
})

/** Shortens tasks, then drops labels, until the page is within its size limit. */
const fitting = (jobs: readonly JobSummary[]): Record<string, unknown>[] => {
  const room = jobs.length * BYTES_PER_JOB
  for (const taskBytes of [160, 100, 60]) {
    const rows = jobs.map(job => describeSummary(job, taskBytes))
    if (sizeOf(rows) <= room) return rows
  }
  return jobs.map(job => {
    const { labels: _, ...row } = describeSummary(job, 60)
    return row
  })
}

const sizeOf = (rows: readonly unknown[]): number => Buffer.byteLength(JSON.stringify(rows))
