import { AppError } from '../../jobs/errors.ts'
import type { ApprovalFront, ApprovalPlan } from '../deps.ts'
import { requireUser } from '../require-user.ts'
import { json } from '../respond.ts'
import { type Call, type Route, route } from '../route.ts'
import { approvalListSchema, approvalSchema } from '../views.ts'

const noCall = (id: string): never => {
  throw new AppError('not_found', `No pending call has the id '${id.slice(0, 60)}'.`)
}

/** Without Proxmox nothing waits for the user. */
const NONE: ApprovalFront = { list: () => [], approve: async id => noCall(id), refuse: noCall }

export const approvalRoutes = (approvals: ApprovalFront = NONE): Route[] => [
  route({
    method: 'GET',
    path: '/api/proxmox/approvals',
    tag: 'proxmox',
    summary: 'List the calls to the cluster that wait for approval',
    responses: { 200: { description: 'The calls', schema: approvalListSchema } },
    handle: () => json({ approvals: approvals.list().map(view) }),
  }),

  route({
    method: 'POST',
    path: '/api/proxmox/approvals/{id}',
    tag: 'proxmox',
    summary: 'Approve a call; on the Unix socket or in the console only',
    responses: { 200: { description: 'The call, which may now be made once', schema: approvalSchema } },
    handle: async call => {
      refuseTokens(call)
      return json(view(await approvals.approve(call.params.id ?? '')))
    },
  }),

  route({
    method: 'DELETE',
    path: '/api/proxmox/approvals/{id}',
    tag: 'proxmox',
    summary: 'Refuse a call; on the Unix socket or in the console only',
    responses: {
      200: { description: 'The call, which is refused until it expires', schema: approvalSchema },
    },
    handle: call => {
      refuseTokens(call)
      return json(view(approvals.refuse(call.params.id ?? '')))
    },
  }),
]

/** An MCP client over HTTP must not be able to approve its own calls. */
const refuseTokens = (call: Call): void =>
  requireUser(call, 'Calls cannot be approved or refused', 'deputy proxmox approve, or deputy open,')

const view = ({ id, who, summary, params, guests, expiresAt, approved }: ApprovalPlan) => ({
  id,
  who,
  call: summary,
  params,
  guests,
  expires_at: new Date(expiresAt).toISOString(),
  approved,
})
