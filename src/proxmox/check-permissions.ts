import type { CallOptions, Request } from './api-request.ts'
import { agentPrivileges, type PrivilegeScope, privilegeTable } from './privileges.ts'
import { pveumLines } from './pveum.ts'

export interface MissingPrivileges {
  readonly path: string
  readonly privileges: readonly string[]
  readonly why: string
}

export interface PermissionReport {
  readonly missing: readonly MissingPrivileges[]
  /** What the administrator types on a node to grant what is missing, and nothing when nothing is. */
  readonly commands: readonly string[]
}

/** Compares what the token may do with the least that jobs need. */
export const checkPermissions = async (
  request: Request,
  place: PrivilegeScope & { user: string; tokenId?: string },
  options: CallOptions = {},
): Promise<PermissionReport> => {
  const missing: MissingPrivileges[] = []
  for (const { path, privileges, why } of privilegeTable(place)) {
    const granted = await privilegesOn(request, path, options)
    const lacking = privileges.filter(name => !granted.has(name))
    // Unrestricted implies the other rights on the agent.
    const real = granted.has('VM.GuestAgent.Unrestricted')
      ? lacking.filter(name => !agentPrivileges(place.major).includes(name))
      : lacking
    if (real.length > 0) missing.push({ path, privileges: real, why })
  }
  return { missing, commands: missing.length === 0 ? [] : pveumLines({ ...place, missing }) }
}

/** The number beside a privilege is its propagate flag: presence is what counts. */
export const privilegesOn = async (
  request: Request,
  path: string,
  options: CallOptions,
): Promise<Set<string>> => {
  const data = await request<Record<string, Record<string, unknown>> | null>(
    'GET',
    '/access/permissions',
    { path },
    options,
  )
  return new Set(Object.keys(data?.[path] ?? {}))
}
