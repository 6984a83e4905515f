import type { Auth } from './auth.ts'
import { forbidden } from './errors.ts'
import { ALL_PRIVILEGES } from './roles.ts'
import type { State } from './state.ts'

/** Effective privileges on a path with their propagate flag: user ∩ token when the token is separated. */
export const privilegesOn = (state: State, auth: Auth, path: string): Map<string, boolean> => {
  const ofUser = personal(state, auth.user, path)
  if (auth.token === undefined) return ofUser
  const token = state.users.get(auth.user)?.tokens.get(auth.token)
  if (!token?.privsep) return ofUser
  const ofToken = personal(state, `${auth.user}!${auth.token}`, path)
  return new Map([...ofToken].filter(([name]) => ofUser.has(name)))
}

export const may = (
  state: State,
  auth: Auth,
  path: string,
  privileges: readonly string[],
  any = false,
): boolean => {
  const held = privilegesOn(state, auth, path)
  return any ? privileges.some(name => held.has(name)) : privileges.every(name => held.has(name))
}

export const check = (
  state: State,
  auth: Auth,
  path: string,
  privileges: readonly string[],
  any = false,
): void => {
  if (may(state, auth, path, privileges, any)) return
  // Of several that are needed, the first that is missing is named; of those of which one is enough, all are.
  const named = any ? privileges.join('|') : privileges.find(name => !may(state, auth, path, [name]))
  throw forbidden(`${path}, ${named}`)
}

/** No token passes this, not even one of root without separation. */
export const isRealRoot = (auth: Auth): boolean => auth.user === 'root@pam' && auth.token === undefined

const personal = (state: State, who: string, path: string): Map<string, boolean> => {
  if (who === 'root@pam') return new Map(ALL_PRIVILEGES.map(name => [name, true]))
  const held = fromAcl(state, who, path)
  // A guest inherits from its pool, but only once it is a member of it.
  const vmid = /^\/vms\/(\d+)$/.exec(path)?.[1]
  const pool = vmid === undefined ? undefined : state.vms.get(Number(vmid))?.pool
  if (pool !== undefined)
    for (const [name, flag] of fromAcl(state, who, `/pool/${pool}`)) held.set(name, flag)
  const storage = /^\/storage\/([^/]+)$/.exec(path)?.[1]
  for (const [id, { storages }] of state.pools) {
    if (storage !== undefined && storages.has(storage))
      for (const [name, flag] of fromAcl(state, who, `/pool/${id}`)) held.set(name, flag)
  }
  return held
}

/** The nearest path with a rule for this user decides; rules above count only when they propagate. */
const fromAcl = (state: State, who: string, path: string): Map<string, boolean> => {
  const held = new Map<string, boolean>()
  for (let at = path; ; at = parent(at)) {
    const rules = state.acl.filter(
      rule => rule.path === at && rule.who === who && (at === path || rule.propagate),
    )
    for (const rule of rules) {
      for (const name of state.roles.get(rule.role) ?? []) held.set(name, rule.propagate)
    }
    if (rules.length > 0 || at === '/') return held
  }
}

const parent = (path: string): string => path.slice(0, path.lastIndexOf('/')) || '/'
