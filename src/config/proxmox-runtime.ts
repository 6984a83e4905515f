import { z } from 'zod'

/** Where machines report; opened only when a runtime needs it. */
export const callbackSchema = z.strictObject({
  host: z.string().default('0.0.0.0').describe('Address of the guest listener, as machines reach it'),
  port: z.number().int().min(0).max(65_535).default(8765).describe('Port of the guest listener'),
  url: z
    .string()
    .regex(/^https?:\/\//, 'is not an http or https address')
    .optional()
    .describe('As machines reach it, when that differs: behind a proxy or NAT'),
  tls: z.boolean().default(false).describe('HTTPS with a certificate that only our machines are told'),
})

const storage = z.string().regex(/^[A-Za-z][A-Za-z0-9._-]*$/, 'is not the name of a storage')

/** Jobs in VMs of a Proxmox VE cluster; how to reach it is said by the PROXMOX_ variables. */
export const proxmoxRuntimeSchema = z.strictObject({
  enabled: z.boolean().default(true).describe('Run jobs on the cluster that PROXMOX_HOST names'),
  template: z.string().min(1).default('agent-template').describe('Name or id of the template'),
  pool: z.string().min(1).default('deputy').describe('Pool of all our machines; rights are given on it'),
  firstVmid: z.number().int().min(100).max(999_999_999).default(100_000),
  lastVmid: z.number().int().min(100).max(999_999_999).default(199_999),
  seedStorage: storage.optional().describe('Storage for seed images; without one, seeds go over HTTP'),
  injection: z.enum(['auto', 'iso', 'http', 'agent']).default('auto').describe('How a machine gets its seed'),
  channel: z
    .enum(['callback', 'agent'])
    .default('callback')
    .describe('How a machine reports: over the network, or through the guest agent'),
  bridge: z.string().min(1).max(32).optional().describe("Network of machines, instead of the template's"),
  zone: z.string().min(1).max(32).optional().describe('SDN zone of the bridge, when it is a vnet'),
  vlan: z.number().int().min(1).max(4094).optional(),
  rate: z.number().min(0.1).optional().describe('MB/s of a machine'),
  firewall: z
    .boolean()
    .default(true)
    .describe('Rules on each machine; they work where the datacenter has its firewall on'),
  privateAddresses: z
    .boolean()
    .default(false)
    .describe('Let jobs reach private addresses: with the network full, or when they list them'),
  warm: z
    .number()
    .int()
    .min(0)
    .max(100)
    .default(0)
    .describe('Machines booted ahead of need, from each of warmTemplates'),
  warmTemplates: z
    .array(z.string().min(1).max(200))
    .min(1)
    .max(20)
    .optional()
    .describe('Templates of those, as jobs name them; the default template unless given'),
  warmAge: z
    .number()
    .int()
    .min(60)
    .default(21_600)
    .describe('Seconds after which a waiting machine is replaced by a new one'),
  boot: z
    .number()
    .int()
    .min(10)
    .max(3600)
    .default(300)
    .describe('Seconds from the start of a machine to its first call'),
  running: z.number().int().min(1).max(1000).default(10).describe('Jobs on the cluster at once'),
  clones: z.number().int().min(1).max(32).default(3).describe('Clones at once on a node'),
  starts: z.number().int().min(1).max(32).default(4).describe('Starts at once on a node'),
  deletes: z.number().int().min(1).max(32).default(4).describe('Deletions at once on a node'),
})

export type ProxmoxRuntimeConfig = z.output<typeof proxmoxRuntimeSchema>
export type CallbackConfig = z.output<typeof callbackSchema>
