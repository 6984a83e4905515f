import { describe, expect, it } from 'vitest'
import { createConsoleSessions } from '../../../src/http/console-sessions.ts'

const KEY = 'a-key-of-some-length'
const MINUTE = 60_000

describe('a code', () => {
  it('gives one session, once', () => {
    const sessions = createConsoleSessions(KEY)
    const { secret } = sessions.newCode({ mayApprove: true })
    const session = sessions.redeem(secret)
    expect(sessions.scopeOf(session!.secret)).toBe('console')
    expect(sessions.redeem(secret)).toBeUndefined()
    expect(sessions.redeem('made up')).toBeUndefined()
  })

  it('expires after five minutes', () => {
    let now = Date.now()
    const sessions = createConsoleSessions(KEY, () => now)
    const { secret } = sessions.newCode({ mayApprove: true })
    now += 5 * MINUTE + 1
    expect(sessions.redeem(secret)).toBeUndefined()
  })

  it('makes way for newer ones', () => {
    const sessions = createConsoleSessions(KEY)
    const codes = Array.from({ length: 40 }, () => sessions.newCode({ mayApprove: true }).secret)
    expect(sessions.redeem(codes[0]!)).toBeUndefined()
    expect(sessions.redeem(codes[39]!)).toBeDefined()
  })
})

it('approves nothing unless its code was made on a terminal, whatever it says itself', () => {
  const sessions = createConsoleSessions(KEY)
  const session = sessions.redeem(sessions.newCode({ mayApprove: false }).secret)!.secret
  expect(sessions.scopeOf(session)).toBe('full')
  expect(sessions.scopeOf(session.replace(/^full/, 'console'))).toBeUndefined()
})

describe('a session', () => {
  const begin = (key: string, now = Date.now) => {
    const sessions = createConsoleSessions(key, now)
    return sessions.redeem(sessions.newCode({ mayApprove: true }).secret)!.secret
  }

  it('outlives the daemon that gave it, and not its key', () => {
    const session = begin(KEY)
    expect(createConsoleSessions(KEY).scopeOf(session)).toBe('console')
    expect(createConsoleSessions('another key').scopeOf(session)).toBeUndefined()
  })

  it('ends after twelve hours, whatever it says itself', () => {
    let now = Date.now()
    const sessions = createConsoleSessions(KEY, () => now)
    const session = begin(KEY, () => now)
    now += 12 * 60 * MINUTE + 1
    expect(sessions.scopeOf(session)).toBeUndefined()
    const [, expiry] = session.split('.')
    expect(sessions.scopeOf(session.replace(expiry!, String(Number(expiry) + 1e9)))).toBeUndefined()
  })

  it.each(['', 'console', 'console...', `console.9999999999999.${'a'.repeat(22)}.${'b'.repeat(43)}`])(
    'is not %j',
    text => {
      expect(createConsoleSessions(KEY).scopeOf(text)).toBeUndefined()
    },
  )
})
