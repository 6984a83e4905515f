import { createHash, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { PveError } from './errors.ts'
import type { State } from './state.ts'

export interface Auth {
  readonly user: string
  readonly token: string | undefined
}

const TICKET_MS = 2 * 60 * 60_000

/** Who asks. A cookie wins over a token, even a bad cookie over a good token. */
export const authenticate = (state: State, method: string, headers: IncomingHttpHeaders): Auth => {
  const cookie = /(?:^|;\s*)PVEAuthCookie=([^;]*)/.exec(headers.cookie ?? '')?.[1]
  if (cookie !== undefined)
    return byTicket(state, method, decodeURIComponent(cookie), headers.csrfpreventiontoken)
  const token = /^PVEAPIToken[= ](.+)$/.exec(headers.authorization ?? '')?.[1]
  if (token !== undefined) return byToken(state, token)
  throw new PveError(401, 'No ticket')
}

export const createTicket = (state: State, user: string): { ticket: string; CSRFPreventionToken: string } => {
  const ticket = `PVE:${user}:${randomBytes(4).toString('hex').toUpperCase()}::${randomBytes(96).toString('base64')}`
  const csrf = `${randomBytes(4).toString('hex').toUpperCase()}:${randomBytes(24).toString('base64')}`
  state.tickets.set(digest(ticket), { user, csrf, at: Date.now() })
  return { ticket, CSRFPreventionToken: csrf }
}

export const checkPassword = (state: State, user: string, password: string): boolean => {
  const found = state.users.get(user)
  if (!found?.enable) return false
  // A valid ticket renews itself when it is given as the password.
  return (
    (found.password !== undefined && found.password === password) ||
    state.tickets.get(digest(password))?.user === user
  )
}

const byTicket = (
  state: State,
  method: string,
  ticket: string,
  csrf: string | string[] | undefined,
): Auth => {
  const found = state.tickets.get(digest(ticket))
  if (!found || Date.now() - found.at > TICKET_MS)
    throw new PveError(401, 'permission denied - invalid PVE ticket')
  if (method !== 'GET' && csrf !== found.csrf)
    throw new PveError(401, 'Permission denied - invalid csrf token')
  return { user: found.user, token: undefined }
}

const byToken = (state: State, text: string): Auth => {
  const match = /^([^!\s]+)!([^=\s]+)=(.+)$/.exec(text)
  const user = match ? state.users.get(match[1]!) : undefined
  const token = user?.enable ? user.tokens.get(match![2]!) : undefined
  if (!token) throw new PveError(401, 'no such token')
  if (token.secret !== match![3]) throw new PveError(401, 'invalid token value!')
  return { user: match![1]!, token: match![2]! }
}

const digest = (text: string): string => createHash('sha256').update(text).digest('hex')
