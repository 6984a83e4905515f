import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import type { Deputy, JobView } from '../engine/deputy.ts'
import { AppError } from '../jobs/errors.ts'
import { isTerminal, type JobState } from '../jobs/states.ts'
import type { Task, TaskSource } from './mcp-tasks.ts'
import { toResult } from './tool-results.ts'
import { jobResult } from './tools/jobs/get-job-result.ts'

export interface JobTaskOptions {
  readonly deputy: Deputy
  readonly readOnly: boolean
}

/** Presents jobs as MCP tasks. Job and task have the same id, so a model can use either kind of tool. */
export const jobTasks = ({ deputy, readOnly }: JobTaskOptions): TaskSource => ({
  get: async id => {
    const job = await find(deputy, id)
    if (job === undefined) return undefined
    const task = taskOf(job)
    // A failed job is a completed task: the tool call succeeded, and its result describes the failure.
    return task.status === 'completed' ? { ...task, result: toResult(await jobResult(deputy, id)) } : task
  },
  cancel: async (id, by) => {
    if (readOnly)
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        'This connection is read-only: it cannot cancel jobs.',
      )
    const job = await find(deputy, id)
    if (job !== undefined && !isTerminal(job.status)) await deputy.cancel(id, by)
  },
  // Jobs never ask for input.
  update: async () => {},
})

export const taskOf = (job: JobView): Task => ({
  taskId: job.job_id,
  status: STATUS[job.status],
  statusMessage: [job.status, job.progress].filter(part => part !== null).join(': '),
  createdAt: job.created_at,
  lastUpdatedAt: job.completed_at ?? job.started_at ?? job.created_at,
})

const STATUS: Record<JobState, Task['status']> = {
  pending: 'working',
  provisioning: 'working',
  running: 'working',
  success: 'completed',
  failed: 'completed',
  timeout: 'completed',
  cancelled: 'cancelled',
}

const find = async (deputy: Deputy, id: string): Promise<JobView | undefined> => {
  try {
    return await deputy.get(id)
  } catch (error) {
    if (error instanceof AppError && (error.code === 'not_found' || error.code === 'invalid'))
      return undefined
    throw error
  }
}
