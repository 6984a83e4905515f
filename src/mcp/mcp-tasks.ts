import {
  type CallToolResult,
  type McpServer,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import { originOf, supportsTasks, TASKS_EXTENSION } from './client-info.ts'

const POLL_MS = 2000

export interface Task {
  readonly taskId: string
  readonly status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'
  readonly statusMessage?: string
  readonly createdAt: string
  readonly lastUpdatedAt: string
}

/** A task with the details of its status: result, error or input requests. */
export interface DetailedTask extends Task {
  readonly result?: CallToolResult
  readonly error?: { readonly code: number; readonly message: string }
  readonly inputRequests?: Readonly<Record<string, unknown>>
}

/** Stores the tasks. A task is on disk before its id is returned. */
export interface TaskSource {
  /** Undefined if there is no task with this id. */
  get(id: string): Promise<DetailedTask | undefined>
  /** Requests the end of a task; does nothing if it has ended. */
  cancel(id: string, by: string): Promise<void>
  update(id: string, responses: Readonly<Record<string, unknown>>): Promise<void>
}

/**
 * Implements the tasks extension of MCP. Only clients of the current protocol revision that declare the extension in
 * the request see tasks.
 */
export const registerTasks = (server: McpServer, source: TaskSource): void => {
  server.server.registerCapabilities({ extensions: { [TASKS_EXTENSION]: {} } })
  const schemas = { params: z.looseObject({ taskId: z.string() }), result: z.looseObject({}) }

  const find = async (taskId: string, ctx: ServerContext): Promise<DetailedTask> => {
    if (!supportsTasks(ctx)) throw missingTasks()
    const task = await source.get(taskId)
    if (task === undefined)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `No task '${taskId}'.`, { taskId })
    return task
  }

  server.server.setRequestHandler('tasks/get', schemas, async ({ taskId }, ctx) => {
    const { result, error, inputRequests, ...task } = await find(taskId, ctx)
    return {
      ...taskFields(task),
      ...(result && { result: { resultType: 'complete', ...result } }),
      ...(error && { error }),
      ...(inputRequests && { inputRequests }),
    }
  })

  server.server.setRequestHandler('tasks/update', schemas, async ({ taskId }, ctx) => {
    await find(taskId, ctx)
    // The SDK moves `inputResponses` from the parameters to the context, for every method.
    await source.update(taskId, ctx.mcpReq.inputResponses ?? {})
    return {}
  })

  server.server.setRequestHandler('tasks/cancel', schemas, async ({ taskId }, ctx) => {
    await find(taskId, ctx)
    await source.cancel(taskId, originOf(server, ctx))
    return {}
  })
}

/** A result that refers to a task. It keeps its content for clients that show the first answer. */
export const asTask = (task: Task, result: CallToolResult = { content: [] }): CallToolResult => ({
  ...result,
  resultType: 'task',
  ...taskFields(task),
})

export const missingTasks = (): MissingRequiredClientCapabilityError =>
  new MissingRequiredClientCapabilityError({
    requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } },
  })

const taskFields = ({ taskId, status, statusMessage, createdAt, lastUpdatedAt }: Task) => ({
  taskId,
  status,
  ...(statusMessage !== undefined && { statusMessage }),
  createdAt,
  lastUpdatedAt,
  // No fixed lifetime: jobs are pruned by count and age.
  ttlMs: null,
  pollIntervalMs: POLL_MS,
})
