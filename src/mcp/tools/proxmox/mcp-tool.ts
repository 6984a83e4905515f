import {
  type Annotations,
  changes,
  defineTool,
  type Tool as McpTool,
  reads,
  type ToolContext,
  type ToolOutcome,
} from '../../tool.ts'
import { describeTool, titleOf } from './describe-tool.ts'
import { withFormerNames } from './former-arguments.ts'
import { inputSchema } from './input-schema.ts'
import { type Confirmation, ConfirmationNeeded, type Question } from './policy/confirm-call.ts'
import type { Caller } from './policy/gate.ts'
import type { Args } from './row-context.ts'
import { runTool } from './run-tool.ts'
import type { ProxmoxService } from './service.ts'
import type { Row, Tool } from './table/define-row.ts'

export const toMcpTool = (service: ProxmoxService, tool: Tool): McpTool => {
  const mcp = { ...define(service, tool), ...(isForTheUser(tool) && { meta: ASK_FIRST }) }
  const readOnlyTool = readOnlyPart(tool)
  if (mcp.annotations.readOnlyHint || !readOnlyTool) return mcp
  let made: McpTool | undefined
  return {
    ...mcp,
    get readOnly() {
      made ??= define(service, readOnlyTool)
      return made
    },
  }
}

const define = (service: ProxmoxService, tool: Tool): McpTool => {
  const defined = defineTool({
    name: tool.name,
    title: titleOf(tool.name),
    description: describeTool(tool),
    annotations: annotationsOf(tool),
    input: inputSchema(tool),
    run: async (args, context) =>
      withConfirmation(context, args, caller => runTool(service, tool, args, caller), tool.name),
  })
  return { ...defined, call: (args, context) => defined.call(withFormerNames(tool, args), context) }
}

/** Makes Claude Code ask its user in every permission mode. The gate checks the confirmation in any case. */
const ASK_FIRST = { 'anthropic/requiresUserInteraction': true }

/** True for tools with destructive actions and no reads. A tool that also reads must work without a question. */
const isForTheUser = (tool: Tool): boolean => {
  const tiers = Object.values(tool.actions).map(row => row.tier)
  return tiers.includes('destructive') && !tiers.includes('read')
}

/** The tool with only its read actions. */
const readOnlyPart = (tool: Tool): Tool | undefined => {
  const kept = Object.entries(tool.actions).filter(([, row]) => row.tier === 'read')
  return kept.length === 0 ? undefined : { ...tool, actions: Object.fromEntries(kept) }
}

export const annotationsOf = (tool: Tool): Annotations => {
  const rows = Object.values(tool.actions)
  if (rows.every(row => row.tier === 'read')) return reads(true)
  return changes({
    destructive: rows.some(row => row.worst === 'destructive'),
    idempotent: rows.every(isIdempotent),
    openWorld: true,
  })
}

const isIdempotent = (row: Row) => row.method !== 'POST'

/** Runs the call. If the user must confirm it first, returns the question instead. */
export const withConfirmation = async (
  context: ToolContext,
  args: Args,
  run: (caller: Caller) => Promise<Readonly<Record<string, unknown>>>,
  tool: string,
): Promise<ToolOutcome> => {
  const caller: Caller = {
    who: context.origin,
    tool,
    action: '',
    signal: context.signal,
    confirmation: confirmationOf(context, args),
    ...(context.progress && { progress: context.progress }),
  }
  try {
    return { data: await run(caller) }
  } catch (error) {
    if (!(error instanceof ConfirmationNeeded)) throw error
    const { question } = error
    if (question.state !== undefined)
      return { data: {}, question: { message: askText(question), state: question.state } }
    return { data: planOf(question) }
  }
}

/** A client that cancels the question, as headless clients do, can still use a token. */
const confirmationOf = ({ elicitation }: ToolContext, args: Args): Confirmation => {
  const token = typeof args.plan_token === 'string' ? args.plan_token : undefined
  if (!elicitation || token !== undefined || elicitation.answer?.action === 'cancel')
    return { kind: 'token', token }
  if (!elicitation.answer) return { kind: 'ask' }
  return {
    kind: 'ask',
    answer: { accepted: elicitation.answer.action === 'accept', state: elicitation.answer.state },
  }
}

const askText = ({ summary, operation, guests }: Question): string =>
  [
    `Allow this on the Proxmox cluster? ${summary}`,
    ...Object.entries(operation.params).map(([key, value]) => `${key} = ${String(value)}`),
    ...guests.map(guest => `Affects ${guest}`),
  ].join('\n')

const planOf = ({ operation, guests, expiresAt, planId, token }: Question) => ({
  status: 'needs_confirmation',
  done: false,
  plan: operation,
  ...(guests.length > 0 && { guests }),
  expires_at: new Date(expiresAt).toISOString(),
  ...(planId === undefined
    ? {
        plan_token: token,
        next: 'Show the plan to the user. Only if they agree, repeat the same call with plan_token.',
      }
    : {
        plan_id: planId,
        next: `Nothing was done. Show the plan to the user. Only they can approve it, in a terminal: deputy proxmox approve ${planId}. When they say they did, repeat exactly the same call.`,
      }),
})
