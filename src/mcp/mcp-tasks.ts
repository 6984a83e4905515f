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

/** A task with what belongs to its status: its result, its error, or what it asks for. */
export interface DetailedTask extends Task {
  readonly result?: CallToolResult
  readonly error?: { readonly code: number; readonly message: string }
  readonly inputRequests?: Readonly<Record<string, unknown>>
}

/** Where tasks live. They are durable before anybody hears of their id. */
export interface TaskSource {
  /** Undefined: there is none of that id. */
  get(id: string): Promise<DetailedTask | undefined>
  /** Asks for its end; a task that has ended already stays as it is. */
  cancel(id: string, by: string): Promise<void>
  update(id: string, responses: Readonly<Record<string, unknown>>): Promise<void>
}

/**
 * The tasks extension of MCP, for clients of the current revision that declare it at each request; nobody else ever
 * sees a task.
 */
export const registerTasks = (server: McpServer, source: TaskSource): void => {
  server.server.registerCapabilities({ extensions: { [TASKS_EXTENSION]: {} } })
  const schemas = { params: z.looseObject({ taskId: z.string() }), result: z.looseObject({}) }

  const find = async (taskId: string, ctx: ServerContext): Promise<DetailedTask> => {
    if (!supportsTasks(ctx)) throw missingTasks()
    const task = await source.get(taskId)
    if (task === undefined)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no task ${taskId}.`, { taskId })
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
    // The SDK takes the responses out of the parameters, whatever the method is.
    await source.update(taskId, ctx.mcpReq.inputResponses ?? {})
    return {}
  })

  server.server.setRequestHandler('tasks/cancel', schemas, async ({ taskId }, ctx) => {
    await find(taskId, ctx)
    await source.cancel(taskId, originOf(server, ctx))
    return {}
  })
}

/** A result that is a handle of the task behind it. Its structured content stays: output schemas ask for it. */
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
  // Jobs are kept by count and age, not for a time that could be promised here.
  ttlMs: null,
  pollIntervalMs: POLL_MS,
})
