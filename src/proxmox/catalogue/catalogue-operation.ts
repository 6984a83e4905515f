export type Verb = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** One call of the API, in the few words that a reader or a check needs. Plain data: it is cached as JSON. */
export interface Operation {
  readonly verb: Verb
  readonly path: string
  readonly name: string
  readonly description: string
  readonly params: readonly Parameter[]
  /** Proxmox's own text or rule about who may call it, shortened to JSON. */
  readonly permissions?: string
  /** No permission rule at all: only root@pam with a ticket may call it. */
  readonly rootOnly: boolean
  readonly tokenAllowed: boolean
  readonly returns: string
  /** Takes parameters that it does not list. */
  readonly open: boolean
}

export interface Parameter {
  readonly name: string
  /** `net[n]` in Proxmox's schema stands for net0, net1 and so on. */
  readonly indexed: boolean
  readonly type: string
  readonly required: boolean
  readonly description: string
  readonly enum?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly format?: string
  /** The keys of a property string such as `virtio,bridge=vmbr0`. */
  readonly properties?: readonly string[]
  readonly default?: string | number | boolean
  readonly alias?: string
}
