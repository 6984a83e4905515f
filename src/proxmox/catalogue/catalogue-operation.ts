export type Verb = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** An operation of the API. Plain data, because it is cached as JSON. */
export interface Operation {
  readonly verb: Verb
  readonly path: string
  readonly name: string
  readonly description: string
  readonly params: readonly Parameter[]
  /** There is no permission rule, so only root@pam with a ticket may call it. */
  readonly rootOnly: boolean
  readonly returns: string
  /** Accepts parameters that are not listed. */
  readonly open: boolean
}

export interface Parameter {
  readonly name: string
  /** `net[n]` in the schema means net0, net1 and so on. */
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
}
