import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { AppError } from '../../../../jobs/errors.ts'
import type { Operation } from './api-operation.ts'

export interface PlanToken {
  readonly id: string
  readonly token: string
  readonly expiresAt: number
}

export interface PlanTokenOptions {
  readonly ttlMs?: number
  readonly now?: () => number
}

/**
 * Issues tokens that permit exactly one call, once, for a few minutes. The key is in memory only, so a restart
 * invalidates all tokens.
 */
export const createPlanTokens = ({ ttlMs = 10 * 60_000, now = Date.now }: PlanTokenOptions = {}) => {
  const key = randomBytes(32)
  const used = new Map<string, number>()
  const sign = (id: string, expires: string, call: string) =>
    createHmac('sha256', key).update(`${id}\n${expires}\n${call}`).digest('base64url').slice(0, 27)

  return {
    issue(call: string): PlanToken {
      const id = randomBytes(6).toString('hex')
      const expiresAt = now() + ttlMs
      const expires = expiresAt.toString(36)
      return { id, expiresAt, token: `${id}.${expires}.${sign(id, expires, call)}` }
    },
    /** Consumes a token. Throws if it was used, has expired or belongs to another call. */
    redeem(token: string, call: string): void {
      const [id = '', expires = '', mac = ''] = token.split('.')
      const expected = Buffer.from(sign(id, expires, call))
      const given = Buffer.from(mac)
      if (given.length !== expected.length || !timingSafeEqual(given, expected))
        throw refuse('is not for this exact call')
      if (Number.parseInt(expires, 36) < now()) throw refuse('has expired')
      if (used.has(id)) throw refuse('was used already')
      for (const [old, until] of used) if (until < now()) used.delete(old)
      used.set(id, Number.parseInt(expires, 36))
    },
  }
}

export type PlanTokens = ReturnType<typeof createPlanTokens>

/** Identifies a call. The order of the parameters does not matter. */
export const digestOf = (who: string, operation: Operation): string => {
  const params = Object.entries(operation.params)
    .map(([key, value]) => [key, wire(value)] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  const text = JSON.stringify([who, operation.method, operation.segments, params])
  return createHash('sha256').update(text).digest('hex')
}

const wire = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(wire)
  return typeof value === 'boolean' ? String(Number(value)) : String(value)
}

const refuse = (why: string) =>
  new AppError('denied', `The plan token ${why}.`, {
    hint: 'Repeat the call without plan_token to get a new plan for the user to approve.',
  })
