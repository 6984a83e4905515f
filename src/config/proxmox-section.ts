import { z } from 'zod'

/** The listener that guests report to; opened only when a runtime needs it. */
export const callbackSchema = z.strictObject({
  host: z.string().default('0.0.0.0').describe('Address of the guest listener, reachable from the VMs'),
  port: z.number().int().min(0).max(65_535).default(8765).describe('Port of the guest listener'),
  url: z
    .string()
    .regex(/^https?:\/\//, 'is not an http or https address')
    .optional()
    .describe('URL of the listener as seen by VMs, if it differs (proxy, NAT)'),
  tls: z.boolean().default(false).describe('Use HTTPS, with a certificate that only these VMs trust'),
})

const storage = z.string().regex(/^[A-Za-z][A-Za-z0-9._-]*$/, 'is not the name of a storage')

/** Jobs in VMs of a Proxmox VE cluster. The PROXMOX_ variables say how to reach it. */
export const proxmoxProviderSchema = z.strictObject({
  enabled: z.boolean().default(true).describe('Run jobs on the cluster that PROXMOX_HOST names'),
  template: z.string().min(1).default('agent-template').describe('Name or id of the template'),
  pool: z
    .string()
    .min(1)
    .default('deputy')
    .describe('Resource pool of all VMs of Deputy; grant the permissions on it'),
  firstVmid: z.number().int().min(100).max(999_999_999).default(100_000),
  lastVmid: z.number().int().min(100).max(999_999_999).default(199_999),
  seedStorage: storage.optional().describe('Storage for seed images; without it, seeds are sent over HTTP'),
  injection: z.enum(['auto', 'iso', 'http', 'agent']).default('auto').describe('How a VM receives its seed'),
  channel: z
    .enum(['callback', 'agent'])
    .default('callback')
    .describe('How a VM reports: over the network, or through the guest agent'),
  bridge: z.string().min(1).max(32).optional().describe("Bridge of the VMs; replaces the template's"),
  zone: z.string().min(1).max(32).optional().describe('SDN zone of the bridge, if it is a vnet'),
  vlan: z.number().int().min(1).max(4094).optional(),
  rate: z.number().min(0.1).optional().describe('Network limit of a VM in MB/s'),
  firewall: z
    .boolean()
    .default(true)
    .describe('Firewall rules on each VM; effective only when the datacenter firewall is on'),
  privateAddresses: z
    .boolean()
    .default(false)
    .describe('Let jobs reach private addresses (with network full, or when they list them)'),
  warm: z.number().int().min(0).max(100).default(0).describe('VMs to keep booted, for each of warmTemplates'),
  warmTemplates: z
    .array(z.string().min(1).max(200))
    .min(1)
    .max(20)
    .optional()
    .describe('Templates of warm VMs, as jobs name them; by default the default template'),
  warmAge: z.number().int().min(60).default(21_600).describe('Seconds after which a warm VM is replaced'),
  boot: z
    .number()
    .int()
    .min(10)
    .max(3600)
    .default(300)
    .describe('Seconds a VM may take from its start to its first call'),
  running: z
    .number()
    .int()
    .min(1)
    .max(1000)
    .default(10)
    .describe('Maximum number of running jobs on the cluster'),
  clones: z.number().int().min(1).max(32).default(3).describe('Concurrent clones per node'),
  starts: z.number().int().min(1).max(32).default(4).describe('Concurrent starts per node'),
  deletes: z.number().int().min(1).max(32).default(4).describe('Concurrent deletions per node'),
})

export type ProxmoxProviderConfig = z.output<typeof proxmoxProviderSchema>
export type CallbackConfig = z.output<typeof callbackSchema>
