export interface PermissionFailure {
  readonly aclPath: string
  /** The least to grant: of privileges of which one is enough, Proxmox VE names the narrowest first. */
  readonly privileges: readonly string[]
}

/** `Permission check failed (/storage/local, Datastore.AllocateSpace|Datastore.Allocate)` in its parts. */
export const parsePermissionFailure = (message: string): PermissionFailure | undefined => {
  const match = /Permission check failed \((\/[^,)\s]*),\s*([A-Za-z.|,\s]+)\)/i.exec(message)
  const privileges = (match?.[2] ?? '')
    .split(/[,\s]+/)
    .map(alternatives => alternatives.split('|')[0]!)
    .filter(name => name !== '')
  return match && privileges.length > 0 ? { aclPath: match[1]!, privileges } : undefined
}
