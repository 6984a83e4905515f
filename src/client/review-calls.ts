import type { ReviewView } from '../engine/deputy.ts'
import { jobPath } from './job-calls.ts'
import type { Connection } from './transport.ts'

/** The review of a job's changes, and whether this caller may have them applied. */
export type ReviewAnswer = ReviewView & { readonly may_apply: boolean }

export type ReviewDecision =
  | { readonly action: 'apply' }
  | { readonly action: 'reject'; readonly comment?: string }
  | { readonly action: 'hand_back'; readonly comment: string }

export const createReviewCalls = ({ transport, retry }: Connection) => ({
  review: (id: string, signal?: AbortSignal): Promise<ReviewAnswer> =>
    retry({ path: `${jobPath(id)}/review`, signal }),

  markViewed: (id: string, path: string, viewed: boolean): Promise<ReviewAnswer> =>
    retry({ method: 'POST', path: `${jobPath(id)}/review/viewed`, json: { path, viewed } }),

  decide: (id: string, decision: ReviewDecision): Promise<ReviewAnswer> =>
    transport.json({ method: 'POST', path: `${jobPath(id)}/review`, json: decision }),
})
