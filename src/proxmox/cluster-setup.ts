import type { Request } from './api-request.ts'
import { path } from './encode.ts'
import { type PrivilegeScope, privilegeTable } from './privileges.ts'
import { proxmoxDetails } from './proxmox-errors.ts'

export interface SetupOptions extends PrivilegeScope {
  readonly user: string
  readonly tokenName: string
}

export interface SetupResult {
  /** What was created or existed already, in order. */
  readonly steps: readonly string[]
  /** The value of a new token; undefined if the token existed, because Proxmox VE shows it only once. */
  readonly secret: string | undefined
}

/** Does through the API what `setupLines` prints. Needs administrator privileges. Can be repeated. */
export const performSetup = async (request: Request, setup: SetupOptions): Promise<SetupResult> => {
  const steps: string[] = []
  const step = async (what: string, work: () => Promise<unknown>): Promise<unknown> => {
    try {
      const result = await work()
      steps.push(`created ${what}`)
      return result
    } catch (error) {
      if (!alreadyExists(error)) throw error
      steps.push(`${what} exists`)
      return undefined
    }
  }
  const { user, tokenName, pool } = setup
  await step(`pool ${pool}`, () => request('POST', '/pools', { poolid: pool, comment: 'machines of Deputy' }))
  await step(`user ${user}`, () => request('POST', '/access/users', { userid: user, comment: 'Deputy' }))
  const token = await step(`token ${user}!${tokenName}`, () =>
    request('POST', path`/access/users/${user}/token/${tokenName}`, { privsep: true }),
  )
  for (const { role: roleid, path: at, privileges } of privilegeTable(setup)) {
    const privs = privileges.join(',')
    const made = await step(`role ${roleid}`, () =>
      request('POST', '/access/roles', { roleid, privs }).then(() => true),
    )
    // Append only: other users may share the role, or an administrator may have extended it.
    if (made === undefined) await request('PUT', path`/access/roles/${roleid}`, { privs, append: true })
    // With privilege separation, user and token both need the rule.
    await request('PUT', '/access/acl', {
      path: at,
      roles: roleid,
      users: user,
      tokens: `${user}!${tokenName}`,
    })
    steps.push(`granted ${roleid} on ${at}`)
  }
  return { steps, secret: (token as { value?: string } | undefined)?.value }
}

const alreadyExists = (error: unknown): boolean => {
  const details = proxmoxDetails(error)
  return (
    details?.kind === 'exists' ||
    Object.values(details?.errors ?? {}).some(text => /already exists/i.test(text))
  )
}
