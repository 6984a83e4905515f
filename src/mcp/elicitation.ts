import {
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { clientCapability } from './client-info.ts'
import type { Elicitation, ToolOutcome } from './tool.ts'

const KEY = 'confirm'

/** The client's support for questions to its user, with the answer if this call carries one. Undefined: no support. */
export const readElicitation = (server: McpServer, ctx: ServerContext): Elicitation | undefined => {
  if (!canAsk(server, ctx)) return undefined
  const response = inputResponse(ctx.mcpReq.inputResponses, KEY)
  const state = ctx.mcpReq.requestState<string>()
  if (response.kind !== 'elicit' || typeof state !== 'string') return {}
  // Sending the form is not enough: the user must tick the box.
  const agreed = response.action === 'accept' && response.content?.[KEY] === true
  return { answer: { action: response.action === 'accept' && !agreed ? 'decline' : response.action, state } }
}

/** Ends the call without effect. The client asks its user and repeats the call with the answer and the state. */
export const toInputRequest = ({
  message,
  state,
  note = 'This cannot be undone',
}: NonNullable<ToolOutcome['question']>): InputRequiredResult =>
  inputRequired({
    requestState: state,
    inputRequests: {
      [KEY]: inputRequired.elicit({
        message,
        requestedSchema: {
          type: 'object',
          properties: { [KEY]: { type: 'boolean', title: 'Confirm', description: note } },
          required: [KEY],
        },
      }),
    },
  })

const canAsk = (server: McpServer, ctx: ServerContext): boolean => {
  const elicitation = clientCapability(server, ctx, 'elicitation')
  if (typeof elicitation !== 'object' || elicitation === null) return false
  // A client that declares no mode supports forms.
  return 'form' in elicitation || !('url' in elicitation)
}
