import { z } from 'zod'
import { commandResult } from '../../../routing/command-result.ts'
import { planRouted, type RoutedCommand, type Routing } from '../../../routing/plan-routed.ts'
import type { ToolContext, ToolOutcome } from '../../tool.ts'
import { MAX_WAIT_SECONDS, waitForEnd } from '../jobs/wait-for-end.ts'
import { askForHost, type HostAccess } from './ask-for-host.ts'

/** Input fields that all tools for commands share. */
export const COMMON_INPUT = {
  cwd: z.string().startsWith('/').optional().describe('Absolute; copied to the node'),
  timeout: z.number().min(1).max(86_400).optional().describe('Seconds'),
  wait_seconds: z.number().min(0).max(MAX_WAIT_SECONDS).default(MAX_WAIT_SECONDS),
}

const requirement = z.string().trim().min(1)

export const REQUIREMENTS = {
  requires_os: requirement.optional(),
  requires_arch: requirement.optional(),
  requires_capabilities: z.array(requirement).optional(),
  requires_labels: z.record(requirement, z.string()).optional(),
}

export const requirementsOf = (input: {
  requires_os?: string | undefined
  requires_arch?: string | undefined
  requires_capabilities?: string[] | undefined
  requires_labels?: Record<string, string> | undefined
}): { os?: string; arch?: string; capabilities?: string[]; labels?: Record<string, string> } => ({
  ...(input.requires_os !== undefined && { os: input.requires_os }),
  ...(input.requires_arch !== undefined && { arch: input.requires_arch }),
  ...(input.requires_capabilities !== undefined && { capabilities: input.requires_capabilities }),
  ...(input.requires_labels !== undefined && { labels: input.requires_labels }),
})

export interface CommandTools extends Routing {
  readonly hostAccess: HostAccess
}

/** Submits a job and waits for it. The job keeps running when the wait ends first. */
export const runCommand = async (
  tools: CommandTools,
  command: RoutedCommand,
  waitSeconds: number,
  context: ToolContext,
): Promise<ToolOutcome> => {
  const request = { ...command, clientDirectory: context.directories[0] }
  const question = await askForHost(tools, request, context)
  if (question !== undefined) return { data: {}, question }
  const plan = await planRouted(request, tools)
  const job = await context.deputy.submit(plan.manifest, context.origin, {
    directories: context.directories,
  })
  await waitForEnd(job.job_id, waitSeconds, context)
  const answer = await commandResult(context.deputy, job.job_id, tools.localName, context.signal)
  return {
    data: { why: plan.because, ...answer, auto_routed: plan.autoRouted, routing: plan.because },
    startedJob: job.job_id,
  }
}
