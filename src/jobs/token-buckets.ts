export interface BucketOptions {
  /** Tokens refilled per second. */
  readonly perSecond: number
  /** Capacity of a bucket. */
  readonly burst: number
  now(): number
}

export interface TokenBuckets {
  /** Takes one token. Returns 0, or the seconds until a token is available. */
  take(key: string): number
  /** Charges extra tokens for a large request. The level may become negative. */
  charge(key: string, tokens: number): void
  readonly size: number
}

interface Bucket {
  level: number
  at: number
}

/** Maximum number of buckets. Full buckets are pruned; keys beyond the maximum share one bucket. */
const MAX_BUCKETS = 10_000
const PRUNE_MS = 1000

/** Token buckets by key. Unauthenticated clients can choose keys, so the number of buckets is bounded. */
export const createTokenBuckets = ({ perSecond, burst, now }: BucketOptions): TokenBuckets => {
  const buckets = new Map<string, Bucket>()
  const crowd: Bucket = { level: burst, at: now() }
  let prunedAt = Number.NEGATIVE_INFINITY

  const refresh = (bucket: Bucket): Bucket => {
    const at = now()
    bucket.level = Math.min(burst, bucket.level + (Math.max(0, at - bucket.at) / 1000) * perSecond)
    bucket.at = at
    return bucket
  }

  /** Pruning visits all buckets, so it runs at most once per PRUNE_MS. */
  const prune = (): void => {
    if (now() - prunedAt < PRUNE_MS) return
    prunedAt = now()
    for (const [key, bucket] of buckets) if (refresh(bucket).level >= burst) buckets.delete(key)
  }

  const find = (key: string): Bucket => {
    const present = buckets.get(key)
    if (present) return refresh(present)
    if (buckets.size >= MAX_BUCKETS) prune()
    if (buckets.size >= MAX_BUCKETS) return refresh(crowd)
    const bucket = { level: burst, at: now() }
    buckets.set(key, bucket)
    return bucket
  }

  return {
    get size() {
      return buckets.size
    },
    take: key => {
      const bucket = find(key)
      if (bucket.level < 1) return (1 - bucket.level) / perSecond
      bucket.level -= 1
      return 0
    },
    charge: (key, tokens) => {
      find(key).level -= tokens
    },
  }
}
