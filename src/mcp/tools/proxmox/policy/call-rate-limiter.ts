import { AppError } from '../../../../jobs/errors.ts'

export interface RateLimiterOptions {
  readonly perMinute: number
  readonly burst: number
  readonly now?: () => number
}

/** A token bucket for each caller: allows bursts, but not endless loops. */
export const createCallRateLimiter = ({ perMinute, burst, now = Date.now }: RateLimiterOptions) => {
  const buckets = new Map<string, { tokens: number; at: number }>()
  const perMs = perMinute / 60_000

  return {
    take(who: string): void {
      const time = now()
      const bucket = buckets.get(who) ?? { tokens: burst, at: time }
      const tokens = Math.min(burst, bucket.tokens + (time - bucket.at) * perMs)
      // Bounds the map. A removed caller starts again with a full bucket.
      if (!buckets.has(who) && buckets.size >= 1000) buckets.delete(buckets.keys().next().value!)
      if (tokens < 1) {
        buckets.set(who, { tokens, at: time })
        const seconds = Math.ceil((1 - tokens) / perMs / 1000)
        throw new AppError(
          'rate_limited',
          `Proxmox rate limit reached: ${burst} calls at once, then ${perMinute} a minute.`,
          { hint: `Try again in ${seconds} s, or read more per call: lists take filter and fields.` },
        )
      }
      buckets.set(who, { tokens: tokens - 1, at: time })
    },
  }
}
