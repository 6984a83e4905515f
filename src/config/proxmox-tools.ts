import { z } from 'zod'

const range = z.string().regex(/^\d{3,9}(-\d{3,9})?$/, "is not a VMID or a range such as '100-199'")
const names = z.array(z.string().min(1)).min(1)

/** All that a rule names must fit; the first rule that fits decides. */
const ruleSchema = z.strictObject({
  effect: z
    .enum(['allow', 'deny', 'confirm'])
    .describe('allow: changes even where they are off; deny: refuse; confirm: ask the user first'),
  tools: names.optional().describe('Tool names; * stands for any characters'),
  actions: names.optional().describe('Actions of tools; of proxmox_api_call the method'),
  tiers: z.array(z.enum(['read', 'elevated', 'destructive'])).optional(),
  nodes: names.optional(),
  vmids: z.array(range).optional(),
  pools: names.optional(),
  tags: names.optional(),
})

/** What agents may do to the Proxmox cluster through the MCP tools. */
export const proxmoxToolsSchema = z.strictObject({
  allowElevated: z
    .boolean()
    .default(false)
    .describe('Let tools change the cluster; otherwise they only read'),
  readOnly: z.boolean().default(false).describe('Only reading, whatever else is allowed'),
  confirm: z
    .enum(['user', 'token'])
    .default('user')
    .describe(
      'For destructive calls of clients that cannot ask. user: the user approves the call with deputy proxmox approve; token: the model is shown a token that approves it',
    ),
  rules: z.array(ruleSchema).default([]).describe('The first that fits decides'),
  protectedVmids: z.array(range).default([]).describe('Guests no tool changes'),
  protectedTags: z.array(z.string()).default(['protected']).describe('Guests with such a tag, too'),
  protectedPools: z.array(z.string()).default([]).describe('Guests in such a pool, too'),
  callsPerMinute: z.number().int().min(1).max(100_000).default(240).describe('Requests of one client'),
  uploadDirs: z
    .array(z.string().startsWith('/'))
    .default([])
    .describe('Directories files may be uploaded from'),
})

export type ProxmoxToolsConfig = z.output<typeof proxmoxToolsSchema>
export type ProxmoxRule = z.output<typeof ruleSchema>
