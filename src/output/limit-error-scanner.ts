/** Error messages of programs that hit a limit. Used where the kernel does not count violations. */
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

/** Errors come last, so only the end of the output is scanned: at least this much, at most twice as much. */
const REMEMBERED_BYTES = 16 * 1024

/** Copies the end of the output into two fixed buffers, so that no chunk is retained. */
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
