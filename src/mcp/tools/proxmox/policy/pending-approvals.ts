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
}

export type Proposal = Omit<Plan, 'id' | 'expiresAt' | 'approved'>

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
      }
      plans.set(call, plan)
      return plan
    },
    list(): Plan[] {
      forgetExpired()
      return [...plans.values()]
    },
    /** Allows the call once. The expiry time starts again. */
    approve(id: string): Plan {
      forgetExpired()
      for (const [call, plan] of plans) {
        if (plan.id !== id) continue
        const approved = { ...plan, approved: true, expiresAt: now() + ttlMs }
        plans.set(call, approved)
        return approved
      }
      throw new AppError('not_found', `No pending call '${id.slice(0, 40)}'.`, {
        hint: 'List the pending calls: deputy proxmox approve. They expire after ten minutes.',
      })
    },
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
