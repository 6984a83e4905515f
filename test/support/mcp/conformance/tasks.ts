import { randomUUID } from 'node:crypto'
import {
  acceptedContent,
  type CallToolResult,
  inputRequired,
  type McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import { supportsTasks } from '../../../../src/mcp/client-info.ts'
import { asTask, type DetailedTask, missingTasks, type TaskSource } from '../../../../src/mcp/mcp-tasks.ts'

const text = (value: string): CallToolResult => ({ content: [{ type: 'text', text: value }] })
const about = (name: string) => ({ description: `Fixture ${name} of the conformance suite` })
const ask = (message: string) =>
  inputRequired.elicit({
    message,
    requestedSchema: { type: 'object', properties: { confirm: { type: 'boolean' } }, required: ['confirm'] },
  })

type End = { result: CallToolResult } | { error: { code: number; message: string } }

/** Tasks that behave as the suite wants it, served by the product's own tasks module. */
export const createFixtureTasks = () => {
  const tasks = new Map<string, DetailedTask>()
  const answered = new Map<string, () => void>()

  const change = (id: string, more: Partial<DetailedTask>) => {
    const task = tasks.get(id)
    if (task && task.status !== 'cancelled')
      tasks.set(id, { ...task, ...more, lastUpdatedAt: new Date().toISOString() })
  }
  const finish = (id: string, end: End) =>
    change(id, { status: 'error' in end ? 'failed' : 'completed', ...end })
  const start = (first: Partial<DetailedTask> = {}): DetailedTask => {
    const now = new Date().toISOString()
    const task = {
      taskId: randomUUID(),
      status: 'working' as const,
      createdAt: now,
      lastUpdatedAt: now,
      ...first,
    }
    tasks.set(task.taskId, task)
    return task
  }
  const later = (seconds: number, end: End): DetailedTask => {
    const task = start()
    setTimeout(() => finish(task.taskId, end), seconds * 1000).unref()
    return task
  }
  const asking = (inputRequests: Record<string, unknown>, end: End): DetailedTask => {
    const task = start({ status: 'input_required', inputRequests })
    answered.set(task.taskId, () => finish(task.taskId, end))
    return task
  }

  const source: TaskSource = {
    get: async id => tasks.get(id),
    cancel: async id => {
      const task = tasks.get(id)
      if (task?.status === 'working' || task?.status === 'input_required')
        tasks.set(id, { ...task, status: 'cancelled' })
    },
    update: async (id, responses) => {
      const open = Object.entries(tasks.get(id)?.inputRequests ?? {}).filter(([key]) => !(key in responses))
      if (tasks.get(id)?.status !== 'input_required') return
      change(id, { inputRequests: Object.fromEntries(open) })
      if (open.length > 0) return
      const { inputRequests: _, ...task } = tasks.get(id)!
      tasks.set(id, task)
      answered.get(id)?.()
    },
  }

  const register = (server: McpServer) => {
    const supporting = (
      name: string,
      schema: z.ZodObject,
      make: (args: Record<string, unknown>) => DetailedTask,
      plain: string,
    ) =>
      server.registerTool(name, { ...about(name), inputSchema: schema }, (args, ctx) =>
        supportsTasks(ctx) ? asTask(make(args)) : text(plain),
      )
    server.registerTool(
      'greet',
      { ...about('greet'), inputSchema: z.object({ name: z.string() }) },
      ({ name }) => text(`Hello, ${name}!`),
    )
    supporting(
      'slow_compute',
      z.object({ seconds: z.number(), label: z.string().optional() }),
      ({ seconds, label }) => later(Number(seconds), { result: text(`computed ${label}`) }),
      'computed at once',
    )
    supporting(
      'failing_job',
      z.object({}),
      () => later(1, { result: { ...text('it failed'), isError: true } }),
      'never called without tasks',
    )
    supporting(
      'protocol_error_job',
      z.object({}),
      () => later(0.2, { error: { code: -32603, message: 'it broke' } }),
      'never called without tasks',
    )
    supporting(
      'confirm_delete',
      z.object({ filename: z.string().optional() }),
      ({ filename }) => asking({ confirm: ask(`Delete ${filename}?`) }, { result: text('deleted') }),
      'nobody was asked',
    )
    supporting(
      'multi_input',
      z.object({}),
      () => asking({ first: ask('First?'), second: ask('Second?') }, { result: text('both answered') }),
      'nobody was asked',
    )
    server.registerTool('test_tool_with_task', about('test_tool_with_task'), ctx => {
      const answer = acceptedContent(ctx.mcpReq.inputResponses, 'user_name')
      if (!answer)
        return inputRequired({
          inputRequests: {
            user_name: inputRequired.elicit({
              message: 'What is your name?',
              requestedSchema: {
                type: 'object',
                properties: { name: { type: 'string' } },
                required: ['name'],
              },
            }),
          },
        })
      return asTask(later(0.2, { result: text(`Hello, ${JSON.stringify(answer)}`) }))
    })
    refuseWithoutTasks(server, ['failing_job'])
  }

  return { source, register }
}

type Handler = (request: { params?: { name?: string } }, ctx: ServerContext) => Promise<unknown>

/** Tools that can only be tasks are refused before they are called; the product has none, so the SDK's handler is wrapped here. */
const refuseWithoutTasks = (server: McpServer, names: readonly string[]) => {
  const handlers: Map<string, Handler> = Reflect.get(server.server, '_requestHandlers')
  const inner = handlers.get('tools/call')
  handlers.set('tools/call', async (request, ctx) => {
    if (names.includes(request.params?.name ?? '') && !supportsTasks(ctx)) throw missingTasks()
    return inner?.(request, ctx)
  })
}
