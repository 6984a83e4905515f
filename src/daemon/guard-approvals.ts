import type { Deputy } from '../engine/deputy.ts'
import type { ApprovalFront } from '../http/deps.ts'
import { AppError } from '../jobs/errors.ts'
import type { Approvals } from '../mcp/tools/proxmox/policy/pending-approvals.ts'

/**
 * Takes no approval while a job runs on this computer without isolation: such a job has a user's rights and could
 * approve what its own agent has asked for.
 */
export const guardApprovals = (approvals: Approvals, deputy: Pick<Deputy, 'list'>): ApprovalFront => ({
  list: approvals.list,
  approve: async id => {
    for (const status of ['running', 'provisioning'] as const) {
      const { jobs } = await deputy.list({ status, limit: 100 })
      const unconfined = jobs.find(job => job.runtime === 'host')
      if (unconfined !== undefined)
        throw new AppError(
          'conflict',
          `The job ${unconfined.job_id} runs on this computer without isolation.`,
          {
            hint: `Approve when it has ended, or end it: deputy cancel ${unconfined.job_id}`,
          },
        )
    }
    return approvals.approve(id)
  },
})
