import { z } from 'zod'

/** The setting `microvm`. */
export const microvmSchema = z.strictObject({
  enabled: z.boolean().default(true),
  image: z
    .string()
    .regex(/^[a-z0-9][a-z0-9._-]{0,62}$/, "is not the name of an image such as 'default'")
    .default('default')
    .describe('Image that VMs boot, as made by deputy microvm setup'),
  warm: z.number().int().min(0).max(100).default(0).describe('VMs to keep booted, ready for a job'),
  warmAge: z
    .number()
    .int()
    .min(60)
    .default(3600)
    .describe('Seconds after which a booted VM that waits is replaced'),
})
