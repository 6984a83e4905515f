import { jobsToolset } from '../mcp/tools/jobs/index.ts'
import type { Toolset } from '../mcp/toolset.ts'

/** Every toolset there is; a front chooses among them when it starts. */
export const toolsets = (): Toolset[] => [jobsToolset]
