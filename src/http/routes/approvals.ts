import { AppError } from '../../jobs/errors.ts'
import type { ApprovalFront, ApprovalPlan } from '../deps.ts'
import { json } from '../respond.ts'
import { type Call, type Route, route } from '../route.ts'
import { approvalListSchema, approvalSchema } from '../views.ts'

export const approvalRoutes = (approvals: ApprovalFront): Route[] => [
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
    summary: 'Approve a call; on the Unix socket only',
    responses: { 200: { description: 'The call, which may now be made once', schema: approvalSchema } },
    handle: async call => {
      refuseTcp(call)
      return json(view(await approvals.approve(call.params.id ?? '')))
    },
  }),
]

/** An MCP client over HTTP has a token and must not be able to approve its own calls. */
const refuseTcp = ({ env }: Call): void => {
  if (env.listener !== 'socket')
    throw new AppError('denied', 'Calls can be approved on the Unix socket only.', {
      hint: 'Run deputy proxmox approve on the computer where the daemon runs.',
    })
}

const view = ({ id, who, summary, params, guests, expiresAt, approved }: ApprovalPlan) => ({
  id,
  who,
  call: summary,
  params,
  guests,
  expires_at: new Date(expiresAt).toISOString(),
  approved,
})
