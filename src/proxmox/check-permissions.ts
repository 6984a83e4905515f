import type { CallOptions, Request } from './api-request.ts'
import { agentPrivileges, type PrivilegeScope, privilegeTable } from './privileges.ts'
import { pveumLines } from './pveum.ts'

interface MissingPrivileges {
  readonly path: string
  readonly privileges: readonly string[]
  readonly why: string
}

export interface PermissionReport {
  readonly missing: readonly MissingPrivileges[]
  /** Commands that grant the missing privileges, for an administrator on a node. */
  readonly commands: readonly string[]
}

/** Compares the privileges of the token with the minimum that jobs need. */
export const checkPermissions = async (
  request: Request,
  place: PrivilegeScope & { user: string; tokenId?: string },
  options: CallOptions = {},
): Promise<PermissionReport> => {
  const missing: MissingPrivileges[] = []
  for (const { path, privileges, why } of privilegeTable(place)) {
    const granted = await privilegesOn(request, path, options)
    const lacking = privileges.filter(name => !granted.has(name))
    // VM.GuestAgent.Unrestricted implies the other agent privileges.
    const real = granted.has('VM.GuestAgent.Unrestricted')
      ? lacking.filter(name => !agentPrivileges(place.major).includes(name))
      : lacking
    if (real.length > 0) missing.push({ path, privileges: real, why })
  }
  return { missing, commands: missing.length === 0 ? [] : pveumLines({ ...place, missing }) }
}

/** The value of a privilege is its propagate flag; a listed privilege is granted in any case. */
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
