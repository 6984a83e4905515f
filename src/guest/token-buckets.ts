export interface BucketOptions {
  /** Tokens that come back in a second. */
  readonly perSecond: number
  /** Tokens of one who was quiet for a while. */
  readonly burst: number
  now(): number
}

export interface TokenBuckets {
  /** Takes one token: 0 when there was one, else the seconds until there is. */
  take(key: string): number
  /** Takes more afterwards, for what turned out to be large. It may leave a debt. */
  charge(key: string, tokens: number): void
  readonly size: number
}

interface Bucket {
  level: number
  at: number
}

/** A full bucket says nothing, so those are dropped; more than this many others have to share. */
const MOST = 10_000
const PRUNE_MS = 1000

/** Token buckets by key. The keys may be a stranger's choice: their number is bounded. */
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

  /** Looking through all of them is not for every call. */
  const prune = (): void => {
    if (now() - prunedAt < PRUNE_MS) return
    prunedAt = now()
    for (const [key, bucket] of buckets) if (refresh(bucket).level >= burst) buckets.delete(key)
  }

  const find = (key: string): Bucket => {
    const present = buckets.get(key)
    if (present) return refresh(present)
    if (buckets.size >= MOST) prune()
    if (buckets.size >= MOST) return refresh(crowd)
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
