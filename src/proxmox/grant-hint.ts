import { AppError } from '../jobs/errors.ts'
import type { Request } from './api-request.ts'
import { privilegesOn } from './check-permissions.ts'
import type { Credentials } from './credentials.ts'
import { proxmoxDetails } from './proxmox-errors.ts'
import { grantLines } from './pveum.ts'

/**
 * A refusal for want of a privilege, with the lines that grant it. A rule on a path replaces those that the path
 * inherits, so the role of the lines repeats what the token may do there now.
 */
export const withGrantHint = async (
  request: Request,
  credentials: Credentials,
  error: unknown,
): Promise<unknown> => {
  const { kind, aclPath, privileges } = proxmoxDetails(error) ?? {}
  if (!(error instanceof AppError) || kind !== 'permission' || !aclPath || !privileges) return error
  const held = await privilegesOn(request, aclPath, { timeoutMs: LOOK_MS }).catch(() => new Set<string>())
  const lines = grantLines({
    ...identityOf(credentials),
    path: aclPath,
    role: roleName(credentials.user, aclPath),
    privileges: [...new Set([...held, ...privileges])].sort(),
  })
  return new AppError(error.code, error.message, {
    hint: `Grant ${privileges.join(', ')} on ${aclPath}. On a node, as root:\n${lines.join('\n')}`,
    retryable: error.retryable,
    details: error.details,
    cause: error.cause,
  })
}

const LOOK_MS = 5000

export const identityOf = (credentials: Credentials): { user: string; tokenId?: string } => ({
  user: credentials.user,
  ...(credentials.kind === 'token' && { tokenId: credentials.id }),
})

/** One for each user and path: a role that others share must not grow for them. */
const roleName = (user: string, path: string): string =>
  `Deputy-${`${user}${path}`.replace(/[^A-Za-z0-9._]+/g, '-').replace(/-$/, '')}`
