import type { GuestLimits } from '../../guest/rate-limiter.ts'
import type { Blobs } from '../../ports.ts'
import type { Logger } from '../../proxmox/logger.ts'
import type { Proxmox } from '../../proxmox/proxmox-client.ts'

export interface ProxmoxProviderOptions {
  readonly proxmox: Proxmox
  readonly blobs: Blobs
  readonly log: Logger
  /** Tells the machines of this installation from those of another on the same cluster. */
  readonly owner: string
  /** Jobs at once. */
  readonly limit: number
  /** Machines booted ahead of need, from each of the templates. */
  readonly poolSize: number
  /** Names or ids; defaults to `template`. */
  readonly poolTemplates?: readonly string[]
  /** A warm machine that is still unused at this age is replaced. */
  readonly poolAgeSeconds?: number
  /** Name or id, for jobs that name none. */
  readonly template: string
  /** Pool of Proxmox VE that all machines belong to; rights are given on it. */
  readonly pool: string
  readonly vmids: { readonly first: number; readonly last: number }
  /** Storage for seed images; without it the seed is fetched over HTTP. */
  readonly seedStorage?: string
  readonly injection: 'auto' | 'iso' | 'http' | 'agent'
  /** How machines report: over the network, or through the guest agent when they cannot reach us. */
  readonly channel: 'callback' | 'agent'
  readonly network: NetworkOptions
  readonly callback: CallbackOptions
  readonly defaults: { readonly cpu: number; readonly memory: number; readonly disk: number | undefined }
  readonly parallel: { readonly clones: number; readonly starts: number; readonly deletes: number }
  readonly keep: {
    readonly artifactFiles: number
    readonly artifactBytes: number
    readonly patchBytes?: number
  }
  readonly graceSeconds: number
  readonly heartbeatSeconds: number
  /** From the start of a machine to its first call. */
  readonly bootSeconds: number
  /** Limits for the requests of one machine that differ from the defaults. */
  readonly limits?: Partial<GuestLimits>
  /** Called after each request of a machine. */
  readonly onCall?: (kind: string, status: number) => void
}

export interface NetworkOptions {
  /** Leaves the template's network alone when absent. */
  readonly bridge?: string
  /** SDN zone of the bridge, when it is a vnet. */
  readonly zone?: string
  readonly tag?: number
  /** MB/s. */
  readonly rate?: number
  /** Sets rules on the VM; they work only where the firewall of the datacenter is on. */
  readonly firewall: boolean
  /** Whether jobs with `network: full` reach private addresses. */
  readonly privateAddresses: boolean
}

export interface CallbackOptions {
  /** Where the listener listens. */
  readonly host: string
  readonly port: number
  /** As machines reach it, when that is another address. */
  readonly url?: string
  readonly tls?: { readonly cert: string; readonly key: string }
}
