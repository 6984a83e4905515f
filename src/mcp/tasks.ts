import {
  type CallToolResult,
  type McpServer,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { Deputy, JobView } from '../engine/deputy.ts'
import { AppError } from '../jobs/errors.ts'
import { isTerminal, type JobState } from '../jobs/states.ts'
import { knowsTasks, originOf, TASKS_EXTENSION } from './client-of.ts'
import { toResult } from './results.ts'
import { jobResult } from './tools/jobs/get-job-result.ts'

const POLL_MS = 2000

export interface TaskOptions {
  readonly deputy: Deputy
  readonly readOnly: boolean
}

/**
 * The tasks extension of MCP: a job is a task, and its id is the task's, so that a model that was told the one
 * can use it as the other. For modern clients only; who does not declare the extension never sees a task.
 */
export const registerTasks = (server: McpServer, { deputy, readOnly }: TaskOptions): void => {
  server.server.registerCapabilities({ extensions: { [TASKS_EXTENSION]: {} } })
  const schemas = { params: z.looseObject({ taskId: z.string() }), result: z.looseObject({}) }

  server.server.setRequestHandler('tasks/get', schemas, async ({ taskId }, ctx) => {
    requireTasks(ctx)
    const job = await find(deputy, taskId)
    if (!hasResult(job.status)) return taskOf(job)
    // A failed job is a completed task: the tool did its work and tells of the failure.
    return {
      ...taskOf(job),
      result: { resultType: 'complete', ...toResult(await jobResult(deputy, taskId)) },
    }
  })

  server.server.setRequestHandler('tasks/update', schemas, async ({ taskId }, ctx) => {
    requireTasks(ctx)
    // Jobs never ask their user anything: acknowledged, as the extension wants it, and dropped.
    await find(deputy, taskId)
    return {}
  })

  server.server.setRequestHandler('tasks/cancel', schemas, async ({ taskId }, ctx) => {
    requireTasks(ctx)
    const job = await find(deputy, taskId)
    if (readOnly)
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        'This connection is read-only: it cannot cancel jobs.',
      )
    if (!isTerminal(job.status)) await deputy.cancel(taskId, originOf(server, ctx))
    return {}
  })
}

/** The answer to a call that started a job, for a client that knows tasks: a handle that is a result as well. */
export const asTask = async (
  deputy: Deputy,
  id: string,
  result: CallToolResult,
): Promise<CallToolResult> => ({
  ...result,
  resultType: 'task',
  ...taskOf(await deputy.get(id)),
})

const taskOf = (job: JobView) => ({
  taskId: job.job_id,
  status: TASK_STATUS[job.status],
  statusMessage: [job.status, job.progress].filter(part => part !== null).join(': '),
  createdAt: job.created_at,
  lastUpdatedAt: job.completed_at ?? job.started_at ?? job.created_at,
  // Jobs are kept by count and age, not for a time that could be promised here.
  ttlMs: null,
  pollIntervalMs: POLL_MS,
})

const TASK_STATUS: Record<JobState, 'working' | 'completed' | 'cancelled'> = {
  pending: 'working',
  provisioning: 'working',
  running: 'working',
  success: 'completed',
  failed: 'completed',
  timeout: 'completed',
  cancelled: 'cancelled',
}

const hasResult = (state: JobState): boolean => TASK_STATUS[state] === 'completed'

const requireTasks = (ctx: ServerContext): void => {
  if (!knowsTasks(ctx))
    throw new MissingRequiredClientCapabilityError({
      requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } },
    })
}

const find = async (deputy: Deputy, id: string): Promise<JobView> => {
  try {
    return await deputy.get(id)
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found')
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no task ${id}.`, { taskId: id })
    throw error
  }
}
