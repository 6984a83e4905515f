import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/**
 * Logins of the console. A code is asked for on the Unix socket, works once and soon expires; the page exchanges it
 * for a session. Sessions are signed, not stored: they outlive a restart of the daemon. The key is not a token, so
 * whoever holds a token cannot make a session.
 */
export interface ConsoleSessions {
  /** With `mayApprove`, its session may approve calls that wait for the user. */
  newCode(options: { readonly mayApprove: boolean }): Grant
  /** The session for a code; undefined when the code is unknown, used or expired. */
  redeem(code: string): Grant | undefined
  /** Returns the scope of a session; undefined if the session is unknown or has expired. */
  scopeOf(session: string): 'full' | 'console' | undefined
}

interface Grant {
  readonly secret: string
  /** Milliseconds of the wall clock. */
  readonly expiresAt: number
}

const CODE_MS = 5 * 60_000
const SESSION_MS = 12 * 3_600_000
const MAX_CODES = 32

export const createConsoleSessions = (key: string, now: () => number = Date.now): ConsoleSessions => {
  /** By the digest of the code, oldest first. */
  const codes = new Map<string, { readonly expiresAt: number; readonly mayApprove: boolean }>()
  const sign = (text: string): string =>
    createHmac('sha256', key).update(`console session ${text}`).digest('base64url')

  const newSession = (mayApprove: boolean): Grant => {
    const expiresAt = now() + SESSION_MS
    const text = `${mayApprove ? 'console' : 'full'}.${expiresAt}.${randomBytes(16).toString('base64url')}`
    return { secret: `${text}.${sign(text)}`, expiresAt }
  }

  return {
    newCode: ({ mayApprove }) => {
      const secret = randomBytes(24).toString('base64url')
      const expiresAt = now() + CODE_MS
      codes.set(digest(secret), { expiresAt, mayApprove })
      for (const [oldest, code] of codes)
        if (codes.size > MAX_CODES || code.expiresAt < now()) codes.delete(oldest)
        else break
      return { secret, expiresAt }
    },
    redeem: code => {
      const name = digest(code)
      const known = codes.get(name)
      codes.delete(name)
      return known !== undefined && known.expiresAt >= now() ? newSession(known.mayApprove) : undefined
    },
    scopeOf: session => {
      const match = SESSION.exec(session)
      if (match === null) return undefined
      const [, text, scope, expiresAt, signature] = match
      const isSigned = timingSafeEqual(Buffer.from(sign(text!)), Buffer.from(signature!))
      if (!isSigned || Number(expiresAt) < now()) return undefined
      return scope === 'console' ? 'console' : 'full'
    },
  }
}

const SESSION = /^((console|full)\.(\d{13,15})\.[\w-]{22})\.([\w-]{43})$/

const digest = (secret: string): string => createHash('sha256').update(secret).digest('hex')
