import { z } from 'zod'
import { ruleSchema } from './rules.ts'

const ranges = z.array(z.string().regex(/^\d{3,9}(-\d{3,9})?$/, "is not a VMID or a range such as '100-199'"))

/** The part of the configuration that says what agents may do to the cluster. */
export const policySchema = z.strictObject({
  allowElevated: z.boolean().default(false).describe('Let tools change the cluster; off: they only read'),
  readOnly: z.boolean().default(false).describe('Nothing but reading, whatever else is allowed'),
  confirm: z
    .enum(['user', 'token'])
    .default('user')
    .describe(
      'Destructive calls from clients that cannot ask: user writes the plan token to a file only the user reads, token shows it to the model',
    ),
  rules: z.array(ruleSchema).default([]).describe('The first that fits decides'),
  protected: z.strictObject({
    vmids: ranges.default([]),
    tags: z.array(z.string()).default(['protected']),
    pools: z.array(z.string()).default([]),
  }),
  callsPerMinute: z.number().int().min(1).max(100_000).default(240).describe('Of one caller'),
  uploadDirs: z
    .array(z.string().startsWith('/'))
    .default([])
    .describe('Directories files may be uploaded from'),
})

export type PolicySettings = z.output<typeof policySchema>

export const defaultPolicy = (): PolicySettings => policySchema.parse({ protected: {} })
