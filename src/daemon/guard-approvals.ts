import type { Deputy } from '../engine/deputy.ts'
import type { ApprovalFront } from '../http/deps.ts'
import { AppError } from '../jobs/errors.ts'
import type { Approvals } from '../mcp/tools/proxmox/policy/pending-approvals.ts'

/**
 * Refuses approvals while a job runs on this computer without isolation. Such a job has the user's rights and could
 * approve the request of its own agent.
 */
export const guardApprovals = (
  approvals: Pick<Approvals, 'list' | 'approve' | 'refuse'>,
  deputy: Pick<Deputy, 'list'>,
): ApprovalFront => ({
  list: approvals.list,
  refuse: approvals.refuse,
  approve: async id => {
    for (const status of ['running', 'provisioning'] as const) {
      const { jobs } = await deputy.list({ status, limit: 100 })
      const unconfined = jobs.find(job => job.runtime === 'host')
      if (unconfined !== undefined)
        throw new AppError(
          'conflict',
          `The job ${unconfined.job_id} runs on this computer without isolation.`,
          {
            hint: `Approve after it has ended, or cancel it: deputy cancel ${unconfined.job_id}`,
          },
        )
    }
    return approvals.approve(id)
  },
})
