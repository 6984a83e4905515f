import { z } from 'zod'
import type { Deputy, ReviewView } from '../../engine/deputy.ts'
import { readBody } from '../body.ts'
import type { ControlDeps } from '../deps.ts'
import { jobId } from '../params.ts'
import { isUser, requireUser } from '../require-user.ts'
import { json } from '../respond.ts'
import { type Call, type Route, route } from '../route.ts'
import { reviewSchema } from '../views.ts'

const MAX_BODY = 64 * 1024

const viewedSchema = z.strictObject({
  path: z.string().min(1).max(4096).describe('A file of the patch'),
  viewed: z.boolean(),
})

const comment = z.string().trim().min(1).max(20_000)

const decisionSchema = z.discriminatedUnion('action', [
  z.strictObject({ action: z.literal('apply') }),
  z.strictObject({ action: z.literal('reject'), comment: comment.exactOptional() }),
  z.strictObject({ action: z.literal('hand_back'), comment }),
])

export const reviewRoutes = ({ deputy }: ControlDeps): Route[] => [
  route({
    method: 'GET',
    path: '/api/jobs/{id}/review',
    tag: 'reviews',
    summary: "Show the review of a job's changes: viewed files and the decision",
    responses: { 200: { description: 'The review', schema: reviewSchema } },
    handle: async call => json({ ...(await deputy.review(jobId(call))), may_apply: isUser(call) }),
  }),

  route({
    method: 'POST',
    path: '/api/jobs/{id}/review/viewed',
    tag: 'reviews',
    summary: 'Mark a file of the patch as viewed, or not',
    body: { description: 'The file', type: 'application/json', schema: viewedSchema },
    responses: { 200: { description: 'The review', schema: reviewSchema } },
    handle: async call => {
      const { path, viewed } = await readBody(call, viewedSchema, MAX_BODY)
      return json({ ...(await deputy.markViewed(jobId(call), path, viewed)), may_apply: isUser(call) })
    },
  }),

  route({
    method: 'POST',
    path: '/api/jobs/{id}/review',
    tag: 'reviews',
    summary:
      "Apply or reject a job's changes, or request others; applying works on the socket or in the console only",
    body: { description: 'The decision', type: 'application/json', schema: decisionSchema },
    responses: {
      200: { description: 'The review', schema: reviewSchema },
      409: { description: 'The patch does not apply; nothing was changed' },
    },
    handle: async call => {
      const decision = await readBody(call, decisionSchema, MAX_BODY)
      return json({ ...(await decide(deputy, call, decision)), may_apply: isUser(call) })
    },
  }),
]

type DecisionRequest = z.output<typeof decisionSchema>

const decide = (deputy: Deputy, call: Call, decision: DecisionRequest): Promise<ReviewView> => {
  const id = jobId(call)
  if (decision.action === 'reject') return deputy.rejectChanges(id, call.origin, decision.comment)
  if (decision.action === 'hand_back') return deputy.handBack(id, call.origin, decision.comment)
  // An MCP client over HTTP must not be able to write its changes into the user's files.
  requireUser(call, 'Changes cannot be applied', `deputy patch --apply . ${id}, or deputy open,`)
  return deputy.applyChanges(id, call.origin)
}
