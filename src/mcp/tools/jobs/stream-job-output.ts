import { z } from 'zod'
import type { OutputPage } from '../../../engine/deputy.ts'
import { outputText } from '../../output-text.ts'
import { defineTool, reads } from '../../tool.ts'
import { prune } from './describe-job.ts'
import { fullJobId, jobId } from './job-id.ts'
import { MAX_WAIT_SECONDS } from './wait-for-end.ts'

const DEFAULT_BYTES = 16 * 1024
const MAX_BYTES = 256 * 1024

export const streamJobOutput = defineTool({
  name: 'stream_job_output',
  title: 'Output of a job',
  description:
    'Output of a job, running or finished, from cursor on. Call again with next_cursor until done. wait_seconds waits for more.',
  annotations: reads(),
  input: z.strictObject({
    job_id: jobId,
    cursor: z.number().int().optional().describe('Byte; negative counts from the end'),
    wait_seconds: z.number().min(0).max(MAX_WAIT_SECONDS).optional(),
    max_bytes: z.number().int().min(16).max(MAX_BYTES).optional(),
    stream: z.enum(['stdout', 'stderr']).optional().describe('Only this one'),
  }),
  run: async (input, { deputy, signal }) => {
    const maxBytes = input.max_bytes ?? DEFAULT_BYTES
    const page = await deputy.output(await fullJobId(deputy, input.job_id), {
      cursor: input.cursor ?? 0,
      maxBytes,
      waitMs: (input.wait_seconds ?? 0) * 1000,
      signal,
    })
    const { text, next_cursor, skipped_bytes } = outputText(page, {
      only: input.stream,
      full: bytesOf(page) >= maxBytes,
    })
    return {
      data: {
        job_id: page.job_id,
        status: page.status,
        text,
        next_cursor,
        done: page.done,
        ...prune({ skipped_bytes: skipped_bytes || null }),
        next: page.done
          ? 'End of output. get_job_result has exit code and artifacts.'
          : `Call again with cursor: ${next_cursor}${text === '' ? ' and wait_seconds: 50' : ''}.`,
      },
    }
  },
})

const bytesOf = ({ pieces }: OutputPage): number =>
  pieces.reduce((sum, piece) => sum + ('data' in piece ? piece.data.length : 0), 0)
