import { createHash, timingSafeEqual } from 'node:crypto'
import { AppError } from '../jobs/errors.ts'
import type { ConsoleSessions } from './console-sessions.ts'
import { createHostCheck } from './hosts.ts'
import type { HttpEnv } from './route.ts'
import type { Tokens } from './tokens.ts'

/**
 * `read` may read everything and change nothing. `console` is the user in a browser: its login began on a
 * terminal and on the Unix socket, which no holder of a token can reach, so it may also approve what those ask for.
 */
export type Scope = 'full' | 'read' | 'console'

export interface GuardOptions {
  readonly tokens: Tokens
  readonly sessions: ConsoleSessions
  readonly allowedHosts: readonly string[]
}

export interface Admission {
  readonly env: HttpEnv
  readonly headers: Headers
  /** Needs no token, such as /livez. */
  readonly open: boolean
  /** Changes nothing, or decides itself what the `read` scope may do. */
  readonly readable: boolean
}

/**
 * Authorises requests. Only its owner can reach the Unix socket, which gives full rights. Every user of this computer
 * and every web page can reach TCP, so Host and Origin are checked and a token is required.
 */
export const createGuard = ({ tokens, sessions, allowedHosts }: GuardOptions) => {
  const checkHost = createHostCheck(allowedHosts)
  const full = digest(tokens.full)
  const read = digest(tokens.read)

  const scopeOf = (header: string | null): Scope | undefined => {
    const token = header === null ? undefined : /^Bearer +([^\s]+) *$/i.exec(header)?.[1]
    if (token === undefined) return undefined
    const given = digest(token)
    // Compare both tokens in any case, so that the duration reveals nothing.
    const isFull = timingSafeEqual(given, full)
    const isRead = timingSafeEqual(given, read)
    if (isFull) return 'full'
    if (isRead) return 'read'
    return sessions.scopeOf(token)
  }

  return ({ env, headers, open, readable }: Admission): Scope => {
    if (env.listener === 'socket') return 'full'
    checkHost(headers)
    if (open) return 'read'
    const header = headers.get('authorization')
    const scope = scopeOf(header)
    if (scope === undefined) throw unauthorized(header !== null)
    if (scope === 'read' && !readable)
      throw new AppError('denied', 'The read-only token cannot change anything.', {
        hint: "Use the token in the file 'token' of the state directory instead of 'token-readonly'.",
      })
    return scope
  }
}

const digest = (token: string): Buffer => createHash('sha256').update(token).digest()

const unauthorized = (given: boolean): AppError =>
  new AppError('unauthorized', given ? 'The bearer token is not valid.' : 'A bearer token is needed.', {
    hint: "Send 'Authorization: Bearer TOKEN' with the content of the file 'token' in the state directory. The Unix socket needs none.",
  })
