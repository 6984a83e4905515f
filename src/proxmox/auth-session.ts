import { AppError } from '../jobs/errors.ts'
import type { Credentials } from './credentials.ts'
import type { Clock } from './proxmox-clock.ts'

export interface AuthSession {
  /** Headers that authenticate a request. */
  headers(method: string): Promise<Record<string, string>>
  /** Call this after a 401. Returns true if one retry with a new ticket makes sense. */
  refused(): boolean
}

export interface Ticket {
  readonly ticket: string
  readonly csrf: string
}

/** Proxmox VE tickets are valid for two hours. */
const RENEW_AFTER_MS = 90 * 60_000
/** A refused password is not retried for this long: realms lock accounts, and each refusal takes 3 s. */
const REFUSED_MS = 60_000

export const createAuthSession = (
  credentials: Credentials,
  options: { clock: Clock; login: (user: string, password: string) => Promise<Ticket> },
): AuthSession =>
  credentials.kind === 'token' ? tokenSession(credentials) : ticketSession(credentials, options)

/** Sends no cookie, because a cookie would take precedence over the token. */
const tokenSession = (credentials: Credentials & { kind: 'token' }): AuthSession => ({
  headers: async () => ({ authorization: `PVEAPIToken=${credentials.id}=${credentials.secret()}` }),
  refused: () => false,
})

const ticketSession = (
  credentials: Credentials & { kind: 'ticket' },
  { clock, login }: Parameters<typeof createAuthSession>[1],
): AuthSession => {
  let held: (Ticket & { at: number }) | undefined
  let pending: Promise<Ticket> | undefined
  let renewedAfterRefusal = Number.NEGATIVE_INFINITY
  let refusal: { at: number; error: unknown } | undefined

  const renew = async (): Promise<Ticket> => {
    try {
      held = { ...(await login(credentials.user, credentials.password())), at: clock.now() }
      refusal = undefined
      return held
    } catch (error) {
      if (error instanceof AppError && error.code === 'unauthorized') refusal = { at: clock.now(), error }
      throw error
    } finally {
      pending = undefined
    }
  }

  // Concurrent callers share one login, so the signal of a single caller must not abort it.
  const current = async (): Promise<Ticket> => {
    if (held && clock.now() - held.at < RENEW_AFTER_MS) return held
    if (refusal && clock.now() - refusal.at < REFUSED_MS) throw refusal.error
    pending ??= renew()
    return pending
  }

  return {
    headers: async method => {
      const { ticket, csrf } = await current()
      const cookie = { cookie: `PVEAuthCookie=${encodeURIComponent(ticket)}` }
      return method === 'GET' ? cookie : { ...cookie, csrfpreventiontoken: csrf }
    },
    refused: () => {
      held = undefined
      if (clock.now() - renewedAfterRefusal < 60_000) return false
      renewedAfterRefusal = clock.now()
      return true
    },
  }
}

export const readTicket = (data: unknown): Ticket => {
  const { ticket, CSRFPreventionToken, NeedTFA } = (data ?? {}) as Record<string, unknown>
  if (NeedTFA) {
    throw new AppError('unauthorized', 'This Proxmox VE user needs a second factor to log in.', {
      hint: 'Use an API token instead: pveum user token add <user> deputy',
    })
  }
  if (typeof ticket !== 'string' || typeof CSRFPreventionToken !== 'string') {
    throw new AppError('internal', 'Proxmox VE answered the login without a ticket.', {
      hint: 'Check that PROXMOX_HOST is a Proxmox VE host.',
    })
  }
  return { ticket, csrf: CSRFPreventionToken }
}
