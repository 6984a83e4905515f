import { AppError } from '../../../../jobs/errors.ts'

export interface RateLimiterOptions {
  readonly perMinute: number
  readonly burst: number
  readonly now?: () => number
}

/** A token bucket for each caller: bursts are fine, loops are not. */
export const createCallRateLimiter = ({ perMinute, burst, now = Date.now }: RateLimiterOptions) => {
  const buckets = new Map<string, { tokens: number; at: number }>()
  const perMs = perMinute / 60_000

  return {
    take(who: string): void {
      const time = now()
      const bucket = buckets.get(who) ?? { tokens: burst, at: time }
      const tokens = Math.min(burst, bucket.tokens + (time - bucket.at) * perMs)
      // Forgetting the oldest caller gives it a full bucket again, which a thousand callers may have.
      if (!buckets.has(who) && buckets.size >= 1000) buckets.delete(buckets.keys().next().value!)
      if (tokens < 1) {
        buckets.set(who, { tokens, at: time })
        const seconds = Math.ceil((1 - tokens) / perMs / 1000)
        throw new AppError(
          'rate_limited',
          `More than ${burst} Proxmox calls at once: after the first ${burst}, ${perMinute} a minute are allowed.`,
          { hint: `Try again in ${seconds} s, or read more at once: lists take filter and fields.` },
        )
      }
      buckets.set(who, { tokens: tokens - 1, at: time })
    },
  }
}
