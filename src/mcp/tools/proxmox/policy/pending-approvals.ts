import { randomBytes } from 'node:crypto'
import { AppError } from '../../../../jobs/errors.ts'

/** A call that waits for the user's approval. It contains nothing that could replace the approval. */
export interface Plan {
  readonly id: string
  /** The caller. */
  readonly who: string
  readonly summary: string
  readonly params: Readonly<Record<string, unknown>>
  readonly guests: readonly string[]
  readonly expiresAt: number
  readonly approved: boolean
  /** The call is refused until the plan expires, however often the caller repeats it. */
  readonly refused: boolean
}

export type Proposal = Omit<Plan, 'id' | 'expiresAt' | 'approved' | 'refused'>

export interface ApprovalOptions {
  readonly ttlMs?: number
  readonly now?: () => number
}

const MAX_PLANS = 100

/**
 * Calls that wait for the user's approval. They are kept in the memory of the daemon only, because an agent could read
 * or write a file. `call` is the digest of the exact call.
 */
export const createApprovals = ({ ttlMs = 10 * 60_000, now = Date.now }: ApprovalOptions = {}) => {
  const plans = new Map<string, Plan>()

  const forgetExpired = () => {
    for (const [call, plan] of plans) if (plan.expiresAt <= now()) plans.delete(call)
  }

  const decide = (id: string, decision: Partial<Plan>): Plan => {
    forgetExpired()
    for (const [call, plan] of plans) {
      if (plan.id !== id || plan.refused) continue
      const decided = { ...plan, ...decision, expiresAt: now() + ttlMs }
      plans.set(call, decided)
      return decided
    }
    throw new AppError('not_found', `No pending call '${id.slice(0, 40)}'.`, {
      hint: 'List the pending calls: deputy proxmox approve. They expire after ten minutes.',
    })
  }

  return {
    /** Returns the existing plan if the same call is repeated. */
    propose(call: string, proposal: Proposal): Plan {
      forgetExpired()
      const known = plans.get(call)
      if (known !== undefined) return known
      const [oldest] = plans.keys()
      if (plans.size >= MAX_PLANS && oldest !== undefined) plans.delete(oldest)
      const plan = {
        ...proposal,
        id: randomBytes(4).toString('hex'),
        expiresAt: now() + ttlMs,
        approved: false,
        refused: false,
      }
      plans.set(call, plan)
      return plan
    },
    list(): Plan[] {
      forgetExpired()
      return [...plans.values()].filter(plan => !plan.refused)
    },
    /** Allows the call once. The expiry time starts again. */
    approve: (id: string): Plan => decide(id, { approved: true }),
    refuse: (id: string): Plan => decide(id, { refused: true, approved: false }),
    /** Consumes the approval: true once for each approval. */
    take(call: string): boolean {
      forgetExpired()
      if (plans.get(call)?.approved !== true) return false
      plans.delete(call)
      return true
    },
  }
}

export type Approvals = ReturnType<typeof createApprovals>
