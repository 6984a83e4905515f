import { AppError } from '../../../../jobs/errors.ts'
import { createTokenBuckets } from '../../../../jobs/token-buckets.ts'

export interface RateLimiterOptions {
  readonly perMinute: number
  readonly burst: number
  readonly now?: () => number
}

/** A token bucket for each caller: allows bursts, but not endless loops. */
export const createCallRateLimiter = ({ perMinute, burst, now = Date.now }: RateLimiterOptions) => {
  const buckets = createTokenBuckets({ perSecond: perMinute / 60, burst, now })
  return {
    take(who: string): void {
      const seconds = buckets.take(who)
      if (seconds === 0) return
      throw new AppError(
        'rate_limited',
        `Proxmox rate limit reached: ${burst} calls at once, then ${perMinute} a minute.`,
        {
          hint: `Try again in ${Math.ceil(seconds)} s, or read more per call: lists take filter and fields.`,
        },
      )
    },
  }
}
