import type { CallOptions, Request } from './api-request.ts'
import { agentPrivileges, type Place, privilegeTable } from './privileges.ts'
import { pveumLines } from './pveum.ts'

export interface Missing {
  readonly path: string
  readonly privileges: readonly string[]
  readonly why: string
}

export interface RightsReport {
  readonly missing: readonly Missing[]
  /** What the administrator types on a node to grant what is missing, and nothing when nothing is. */
  readonly commands: readonly string[]
}

/** Compares what the token may do with the least that jobs need. */
export const checkRights = async (
  request: Request,
  place: Place & { user: string; tokenId?: string },
  options: CallOptions = {},
): Promise<RightsReport> => {
  const missing: Missing[] = []
  for (const { path, privileges, why } of privilegeTable(place)) {
    const granted = await grantedOn(request, path, options)
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
export const grantedOn = async (
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
