import type { CallOptions, Request } from './api-request.ts'
import { path } from './encode.ts'
import { type PrivilegeScope, privilegeTable } from './privileges.ts'
import { proxmoxDetails } from './proxmox-errors.ts'

export interface SetupOptions extends PrivilegeScope {
  readonly user: string
  readonly tokenName: string
}

export interface SetupResult {
  /** What was made or was there already, in order. */
  readonly steps: readonly string[]
  /** Told once, when the token is made; undefined when it existed. */
  readonly secret: string | undefined
}

/** Does through the API what `setupLines` prints. Needs an administrator, and can be repeated. */
export const performSetup = async (
  request: Request,
  setup: SetupOptions,
  options: CallOptions = {},
): Promise<SetupResult> => {
  const steps: string[] = []
  const step = async (what: string, work: () => Promise<unknown>): Promise<unknown> => {
    try {
      const result = await work()
      steps.push(`made ${what}`)
      return result
    } catch (error) {
      if (!isThere(error)) throw error
      steps.push(`${what} is there`)
      return undefined
    }
  }
  const { user, tokenName, pool } = setup
  await step(`pool ${pool}`, () =>
    request('POST', '/pools', { poolid: pool, comment: 'machines of Deputy' }, options),
  )
  await step(`user ${user}`, () =>
    request('POST', '/access/users', { userid: user, comment: 'Deputy' }, options),
  )
  const token = await step(`token ${user}!${tokenName}`, () =>
    request('POST', path`/access/users/${user}/token/${tokenName}`, { privsep: true }, options),
  )
  for (const { role: roleid, path: at, privileges } of privilegeTable(setup)) {
    const privs = privileges.join(',')
    const made = await step(`role ${roleid}`, () =>
      request('POST', '/access/roles', { roleid, privs }, options).then(() => true),
    )
    // Other users may have the role, and an administrator may have added to it.
    if (made === undefined)
      await request('PUT', path`/access/roles/${roleid}`, { privs, append: true }, options)
    // With privilege separation both need the rule.
    await request(
      'PUT',
      '/access/acl',
      { path: at, roles: roleid, users: user, tokens: `${user}!${tokenName}` },
      options,
    )
    steps.push(`granted ${roleid} on ${at}`)
  }
  return { steps, secret: (token as { value?: string } | undefined)?.value }
}

const isThere = (error: unknown): boolean => {
  const details = proxmoxDetails(error)
  return (
    details?.kind === 'exists' ||
    Object.values(details?.errors ?? {}).some(text => /already exists/i.test(text))
  )
}
