import { z } from 'zod'

const range = z.string().regex(/^\d{3,9}(-\d{3,9})?$/, "is not a VMID or a range such as '100-199'")
const names = z.array(z.string().min(1)).min(1)

/** A rule matches when all of its conditions match; the first matching rule decides. */
const ruleSchema = z.strictObject({
  effect: z
    .enum(['allow', 'deny', 'confirm'])
    .describe('allow: permit changes even if they are off; deny: refuse; confirm: ask the user first'),
  tools: names.optional().describe('Tool names; * stands for any characters'),
  actions: names.optional().describe('Tool actions; for proxmox_api_call, the HTTP method'),
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
  readOnly: z.boolean().default(false).describe('Only read, whatever else is allowed'),
  confirm: z
    .enum(['user', 'token'])
    .default('user')
    .describe(
      'How destructive calls are confirmed when the client cannot ask. user: the user runs deputy proxmox approve; token: the model receives a token that approves the call',
    ),
  rules: z.array(ruleSchema).default([]).describe('The first matching rule decides'),
  protectedVmids: z.array(range).default([]).describe('Guests that no tool may change'),
  protectedTags: z
    .array(z.string())
    .default(['protected'])
    .describe('Guests with such a tag are protected too'),
  protectedPools: z.array(z.string()).default([]).describe('Guests in such a pool are protected too'),
  callsPerMinute: z
    .number()
    .int()
    .min(1)
    .max(100_000)
    .default(240)
    .describe('Requests per client and minute'),
  uploadDirs: z
    .array(z.string().startsWith('/'))
    .default([])
    .describe('Directories that tools may upload files from'),
})

export type ProxmoxToolsConfig = z.output<typeof proxmoxToolsSchema>
export type ProxmoxRule = z.output<typeof ruleSchema>
