import { z } from 'zod'
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
import { inputSchema } from './input-schema.ts'
import { type Confirmation, ConfirmationNeeded, type Question } from './policy/confirm-call.ts'
import type { Caller } from './policy/gate.ts'
import type { Args } from './row-context.ts'
import { runTool } from './run-tool.ts'
import type { ProxmoxService } from './service.ts'
import type { Row, Tool } from './table/define-row.ts'

/** A row's answer explains itself; its columns depend on the action. */
const output = z.looseObject({})

export const toMcpTool = (service: ProxmoxService, tool: Tool): McpTool => {
  const mcp = { ...define(service, tool), ...(isForTheUser(tool) && { meta: ASK_FIRST }) }
  const looking = readOnlyPart(tool)
  if (mcp.annotations.readOnlyHint || !looking) return mcp
  let made: McpTool | undefined
  return {
    ...mcp,
    get readOnly() {
      made ??= define(service, looking)
      return made
    },
  }
}

const define = (service: ProxmoxService, tool: Tool): McpTool =>
  defineTool({
    name: tool.name,
    title: titleOf(tool.name),
    description: describeTool(tool),
    annotations: annotationsOf(tool),
    input: inputSchema(tool),
    output,
    run: async (args, context) =>
      withConfirmation(context, args, caller => runTool(service, tool, args, caller), tool.name),
  })

/** Tells Claude Code to ask its user whatever mode it is in; what really decides is the gate. */
const ASK_FIRST = { 'anthropic/requiresUserInteraction': true }

/** Nothing to look at, and something to lose. A tool that also reads must stay usable without questions. */
const isForTheUser = (tool: Tool): boolean => {
  const tiers = Object.values(tool.actions).map(row => row.tier)
  return tiers.includes('destructive') && !tiers.includes('read')
}

/** The same tool with the actions that change nothing. */
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

/** Runs the call; where the user must decide first, the outcome is the question instead. */
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

/** A client that gave up on the question (a headless one always does) still has the token. */
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
    ...guests.map(guest => `Reaches ${guest}`),
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
