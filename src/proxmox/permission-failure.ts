export interface PermissionFailure {
  readonly aclPath: string
  /** The minimum to grant. Of alternatives, Proxmox VE lists the narrowest first. */
  readonly privileges: readonly string[]
}

/** Parses `Permission check failed (/storage/local, Datastore.AllocateSpace|Datastore.Allocate)`. */
export const parsePermissionFailure = (message: string): PermissionFailure | undefined => {
  const match = /Permission check failed \((\/[^,)\s]*),\s*([A-Za-z.|,\s]+)\)/i.exec(message)
  const privileges = (match?.[2] ?? '')
    .split(/[,\s]+/)
    .map(alternatives => alternatives.split('|')[0]!)
    .filter(name => name !== '')
  return match && privileges.length > 0 ? { aclPath: match[1]!, privileges } : undefined
}
