import { McpServer, type RegisteredTool } from '@modelcontextprotocol/server'
import type { Deputy } from '../engine/deputy.ts'
import { DirectoryRefused } from '../jobs/allowed-directories.ts'
import { toAppError } from '../jobs/errors.ts'
import type { BridgeClient, ServerFactory } from './bridge-client.ts'
import { originOf, supportsTasks } from './client-info.ts'
import { clientDirectories, requestRoots } from './client-roots.ts'
import { readElicitation, toInputRequest } from './elicitation.ts'
import { type InstructionsContext, instructions } from './instructions.ts'
import { jobTasks, taskOf } from './job-tasks.ts'
import { listedSchema } from './listed-schema.ts'
import { loadToolsetTool } from './load-toolset.ts'
import { asTask, registerTasks, type TaskSource } from './mcp-tasks.ts'
import { progressOf } from './progress-notifications.ts'
import { registerPrompts } from './prompts.ts'
import { registerResources } from './resources.ts'
import type { Tool } from './tool.ts'
import { toErrorResult, toResult } from './tool-results.ts'
import { type Selection, selectTools, type Toolset } from './toolset.ts'
import { hideUnlistedTools, isListed } from './unlisted-tools.ts'

export interface McpOptions extends Selection {
  readonly deputy: Deputy
  /** All toolsets; the `toolsets` of the selection chooses among them. */
  readonly available: readonly Toolset[]
  readonly version: string
  /** Called for every connection, so it must be fast. */
  instructionsContext(settings: readonly string[]): InstructionsContext
  /** The source of MCP tasks. Default: each job is a task. */
  readonly tasks?: TaskSource
  /** Called with internal errors, which are not the caller's fault. */
  readonly onerror?: (error: Error) => void
}

const LIST_TTL_MS = 60_000

/**
 * Returns a function that creates a server for each HTTP request or stdio connection. Expensive work, such as the
 * schemas, is done once, here.
 */
export const createServerFactory = (options: McpOptions): ServerFactory => {
  const { deputy, available, version, readOnly = false } = options
  const selected = selectTools(available, options)
  const listed = selected.tools.map(tool => ({ tool, config: configOf(tool) }))
  // A client that names its toolsets gets exactly those.
  const others = options.toolsets?.some(name => name !== 'default')
    ? []
    : available.filter(toolset => !selected.toolsets.includes(toolset))
  const mayChange = selected.toolsets.some(toolset => toolset.unlisted !== undefined)
  const tasks = options.tasks ?? jobTasks({ deputy, readOnly })
  const fixedList = { ttlMs: LIST_TTL_MS, cacheScope: 'private' as const }

  return ({ era }, bridge) => {
    // Over HTTP each request may have a server of its own, so nothing can be loaded into it.
    const canLoad = bridge !== undefined && others.length > 0
    const server = new McpServer(
      { name: 'deputy', title: 'Deputy', version },
      {
        capabilities: {
          tools: { listChanged: mayChange || canLoad },
          prompts: { listChanged: false },
          resources: { listChanged: true, subscribe: true },
        },
        instructions: instructions({
          context: options.instructionsContext(options.settings ?? []),
          selected: {
            ...selected,
            toolsets: selected.toolsets.filter(one => isListed(one) || selected.named.has(one.name)),
          },
          available: available.filter(isListed),
          readOnly,
          canLoad,
        }),
        debouncedNotificationMethods: ['notifications/tools/list_changed'],
        cacheHints: {
          'tools/list': fixedList,
          'prompts/list': fixedList,
          'resources/templates/list': fixedList,
        },
      },
    )
    const handles = listed.map(({ tool, config }) => registerTool({ server, options, tool, config, bridge }))
    if (mayChange)
      hideUnlistedTools(server, selected, new Map(handles.map((handle, i) => [listed[i]!.tool.name, handle])))
    if (canLoad) {
      const register = (tool: Tool) => registerTool({ server, options, tool, config: configOf(tool), bridge })
      const known = new Set(selected.tools.map(({ name }) => name))
      const load = (toolset: Toolset): string[] => {
        const { tools } = selectTools([toolset], { toolsets: ['all'], readOnly })
        for (const tool of tools.filter(({ name }) => !known.has(name))) {
          register(tool)
          known.add(tool.name)
        }
        return tools.map(({ name }) => name)
      }
      register(loadToolsetTool(others, load))
    }
    registerResources(server, deputy)
    registerPrompts(server)
    if (era === 'modern') registerTasks(server, tasks)
    return server
  }
}

const configOf = (tool: Tool): Registration['config'] => ({
  title: tool.title,
  description: tool.description,
  inputSchema: listedSchema(tool.input),
  annotations: { ...tool.annotations },
  ...(tool.meta && { _meta: { ...tool.meta } }),
})

interface Registration {
  server: McpServer
  options: McpOptions
  tool: Tool
  bridge: BridgeClient | undefined
  config: Omit<Parameters<McpServer['registerTool']>[1], 'inputSchema' | 'outputSchema'> & {
    inputSchema: ReturnType<typeof listedSchema>
  }
}

const registerTool = ({ server, options, tool, config, bridge }: Registration): RegisteredTool => {
  const { deputy, onerror } = options
  return server.registerTool(tool.name, config, async (args, ctx) => {
    const progress = progressOf(ctx)
    const elicitation = readElicitation(server, ctx)
    try {
      const outcome = await tool.call(args, {
        deputy,
        origin: originOf(server, ctx),
        directories: await clientDirectories(bridge, ctx),
        signal: ctx.mcpReq.signal,
        ...(progress && { progress }),
        ...(elicitation && { elicitation }),
      })
      if (outcome.question) return toInputRequest(outcome.question)
      const result = toResult(outcome)
      return outcome.startedJob !== undefined && supportsTasks(ctx)
        ? asTask(taskOf(await deputy.get(outcome.startedJob)), result)
        : result
    } catch (thrown) {
      const error = toAppError(thrown)
      // The call had no effect yet. The client repeats it together with its roots.
      const question = error instanceof DirectoryRefused ? requestRoots(server, bridge, ctx) : undefined
      if (question !== undefined) return question
      // A cancelled call gets no response, and errors caused by the cancellation are not reported.
      if (error.code === 'internal' && !ctx.mcpReq.signal.aborted) onerror?.(error)
      return toErrorResult(error)
    }
  })
}
