import { z } from 'zod'
import type { Deputy } from '../../../engine/deputy.ts'
import { toAppError } from '../../../jobs/errors.ts'
import { INDEX_LABEL } from '../../../jobs/labels.ts'
import { isTerminal } from '../../../jobs/states.ts'
import { batchManifest } from '../../../routing/batch-manifest.ts'
import { commandResult } from '../../../routing/command-result.ts'
import { planRouted, type RoutedCommand, type Routing } from '../../../routing/plan-routed.ts'
import { changes, defineTool, type Tool } from '../../tool.ts'
import { waitForEnd } from '../jobs/wait-for-end.ts'
import { COMMON_INPUT, REQUIREMENTS, requirementsOf } from './run-on-cluster.ts'

const MAX_COMMANDS = 1000
/** Limit for the output in one answer, shared by all commands. The full log is available by task_id. */
const OUTPUT_BYTES = 512 * 1024
const OUTPUT_BYTES_PER_COMMAND = 48 * 1024

export const parallelExecute = (tools: Routing): Tool =>
  defineTool({
    name: 'parallel_execute',
    title: 'Run commands in parallel',
    description:
      'Run many bash commands at once, spread over the nodes by load. Results keep the order; a failure does not stop the others.',
    annotations: changes({ destructive: true, idempotent: false, openWorld: true }),
    input: z.strictObject({
      commands: z.array(z.string()).min(1).max(MAX_COMMANDS),
      ...REQUIREMENTS,
      ...COMMON_INPUT,
    }),
    run: async (input, context) => {
      const requires = requirementsOf(input)
      const timeout = input.timeout ?? tools.cluster.config.timeouts.command
      const manifest = batchManifest({ commands: input.commands, requires, timeout, cwd: input.cwd })
      const job = await context.deputy.submit(manifest, context.origin, {
        directories: context.directories,
      })
      const last = await waitForEnd(job.job_id, input.wait_seconds, context)
      const each = { requires, cwd: input.cwd, autoRoute: true, spread: true }
      const requests = input.commands.map(command => ({ ...each, command }))
      const results = await batchResults(tools, context.deputy, job.job_id, requests, context.signal)
      const done = isTerminal(last.status)
      return {
        data: {
          success: done && results.every(result => result.success === true),
          task_id: job.job_id,
          status: last.status,
          results,
          ...(!done && {
            next: `Still running. Call get_job_status with job_id ${job.job_id}; each result has its own task_id.`,
          }),
        },
        startedJob: job.job_id,
      }
    },
  })

const batchResults = async (
  tools: Routing,
  deputy: Deputy,
  parent: string,
  requests: readonly RoutedCommand[],
  signal: AbortSignal,
): Promise<Record<string, unknown>[]> => {
  const children = new Map<number, string>()
  let cursor: string | undefined
  do {
    const page = await deputy.list({ parent, limit: 100, ...(cursor !== undefined && { cursor }) })
    for (const child of page.jobs) children.set(Number(child.labels?.[INDEX_LABEL] ?? -1), child.job_id)
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
  const share = Math.min(OUTPUT_BYTES_PER_COMMAND, Math.floor(OUTPUT_BYTES / requests.length))
  return Promise.all(
    requests.map(async (request, index) => {
      const { command } = request
      const id = children.get(index)
      if (id === undefined) return { command, success: false, error: await refusalOf(tools, request) }
      return {
        command,
        ...(await commandResult(deputy, id, tools.localName, signal, share)),
        auto_routed: true,
      }
    }),
  )
}

/** A command without a job was refused. Planning it again gives the reason. */
const refusalOf = async (tools: Routing, request: RoutedCommand): Promise<string> => {
  try {
    await planRouted(request, tools)
    return 'Not started yet.'
  } catch (error) {
    return toAppError(error).message
  }
}
