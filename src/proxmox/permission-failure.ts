/** `Permission check failed (/storage/local, Datastore.AllocateSpace|Datastore.Allocate)` in its parts. */
export const parsePermissionFailure = (message: string): { aclPath?: string; privileges?: string[] } => {
  const match = /Permission check failed \(([^,)]+)(?:,\s*([^)]*))?\)/i.exec(message)
  if (!match) return {}
  const aclPath = match[1]!.trim()
  const privileges = (match[2] ?? '').split(/[|,;\s]+/).filter(name => name !== '')
  return privileges.length > 0 ? { aclPath, privileges } : { aclPath }
}
