import { AppError, amendError } from '../jobs/errors.ts'
import type { Request } from './api-request.ts'
import { privilegesOn } from './check-permissions.ts'
import type { Credentials } from './credentials.ts'
import { proxmoxDetails } from './proxmox-errors.ts'
import { grantLines } from './pveum.ts'

/**
 * Adds the pveum commands that grant the missing privilege to a permission error. An ACL entry on a path replaces the
 * inherited ones, so the role in the commands includes the privileges that the token has there already.
 */
export const withGrantHint = async (
  request: Request,
  credentials: Credentials,
  error: unknown,
): Promise<unknown> => {
  const { kind, aclPath, privileges } = proxmoxDetails(error) ?? {}
  if (!(error instanceof AppError) || kind !== 'permission' || !aclPath || !privileges) return error
  const held = await privilegesOn(request, aclPath, { timeoutMs: PERMISSIONS_TIMEOUT_MS }).catch(
    () => new Set<string>(),
  )
  const lines = grantLines({
    ...identityOf(credentials),
    path: aclPath,
    role: roleName(credentials.user, aclPath),
    privileges: [...new Set([...held, ...privileges])].sort(),
  })
  return amendError(error, {
    hint: `Grant ${privileges.join(', ')} on ${aclPath}. On a node, as root:\n${lines.join('\n')}`,
  })
}

const PERMISSIONS_TIMEOUT_MS = 5000

export const identityOf = (credentials: Credentials): { user: string; tokenId?: string } => ({
  user: credentials.user,
  ...(credentials.kind === 'token' && { tokenId: credentials.id }),
})

/** One role per user and path: extending a shared role would give privileges to its other users. */
const roleName = (user: string, path: string): string =>
  `Deputy-${`${user}${path}`.replace(/[^A-Za-z0-9._]+/g, '-').replace(/-$/, '')}`
