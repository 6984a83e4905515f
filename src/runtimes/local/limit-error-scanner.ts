/** What a program prints when a limit stops it. Only asked where the kernel does not count for us. */
const PHRASES = {
  disk: ['No space left on device', 'ENOSPC'],
  memory: ['MemoryError', 'Cannot allocate memory', 'out of memory', 'bad_alloc'],
  processes: ['Resource temporarily unavailable', 'Cannot fork'],
} as const

export type ScannedLimit = keyof typeof PHRASES

export interface LimitErrorScanner {
  scan(data: Buffer): void
  found(limit: ScannedLimit): boolean
}

/** Complaints come last: the end of what was printed is enough. At least so much of it, and twice that at the most. */
const REMEMBERED_BYTES = 16 * 1024

/** What was printed is copied: nothing large is held for it. */
export const createLimitErrorScanner = (): LimitErrorScanner => {
  let newer = { bytes: NOTHING, used: 0 }
  let older = newer
  return {
    scan: data => {
      const end = data.subarray(Math.max(0, data.length - REMEMBERED_BYTES))
      if (newer.used + end.length > newer.bytes.length) {
        const bytes = older.bytes === NOTHING ? Buffer.allocUnsafeSlow(REMEMBERED_BYTES) : older.bytes
        older = newer
        newer = { bytes, used: 0 }
      }
      newer.used += end.copy(newer.bytes, newer.used)
    },
    found: limit => {
      const text = Buffer.concat([older, newer].map(({ bytes, used }) => bytes.subarray(0, used)))
      return PHRASES[limit].some(phrase => text.includes(phrase))
    },
  }
}

const NOTHING = Buffer.alloc(0)
