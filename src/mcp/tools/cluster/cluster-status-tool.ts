import { z } from 'zod'
import type { ClusterStatus } from '../../../routing/cluster-status.ts'
import { defineTool, reads, type Tool } from '../../tool.ts'

export const clusterStatus = (status: ClusterStatus): Tool =>
  defineTool({
    name: 'cluster_status',
    title: 'Status of the cluster',
    description: 'Load, health and running tasks of this computer and every node.',
    annotations: reads(true),
    input: z.strictObject({}),
    run: async (_, { deputy, signal }) => ({ data: { ...(await status(deputy, signal)) } }),
  })
