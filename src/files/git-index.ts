import { createHash } from 'node:crypto'

const ENTRY_STATS = 40
const EXTENDED = 0x4000
const NAME_LENGTH = 0xfff
const DIRECTORY = 0o040000

/**
 * Parses the paths in a git index. Running git instead would execute programs named by the repository's
 * configuration. Returns undefined for a damaged index or a split one. See gitformat-index(5).
 */
export const pathsInIndex = (index: Buffer): string[] | undefined => {
  const hashBytes = hashLength(index)
  if (hashBytes === undefined || index.toString('latin1', 0, 4) !== 'DIRC') return undefined
  const version = index.readUInt32BE(4)
  if (version < 2 || version > 4) return undefined
  const paths: string[] = []
  const end = index.length - hashBytes
  let at = 12
  let previous: Buffer = Buffer.alloc(0)
  for (let left = index.readUInt32BE(8); left > 0; left--) {
    const start = at
    if (start + ENTRY_STATS + hashBytes + 4 > end) return undefined
    const mode = index.readUInt32BE(start + 24)
    const flags = index.readUInt16BE(start + ENTRY_STATS + hashBytes)
    at += ENTRY_STATS + hashBytes + ((flags & EXTENDED) !== 0 ? 4 : 2)
    let kept: Buffer = Buffer.alloc(0)
    if (version === 4) {
      const strip = readOffset(index, at)
      if (strip === undefined || strip.value > previous.length) return undefined
      kept = previous.subarray(0, previous.length - strip.value)
      at = strip.next
    }
    const nul = index.indexOf(0, at)
    if (nul === -1 || nul > end) return undefined
    previous = Buffer.concat([kept, index.subarray(at, nul)])
    if (version < 4 && (flags & NAME_LENGTH) !== Math.min(previous.length, NAME_LENGTH)) return undefined
    // Entries of versions 2 and 3 are padded to a multiple of eight.
    at = version === 4 ? nul + 1 : start + ((nul - start + 8) & ~7)
    // A sparse index has entries for whole directories that are not checked out.
    if ((mode & 0o170000) !== DIRECTORY) paths.push(previous.toString('utf8'))
  }
  return hasSharedPart(index, at, end) ? undefined : paths
}

/**
 * The index ends with its own digest, whose length shows the type of the object ids. Zeros mean that git skipped the
 * digest.
 */
const hashLength = (index: Buffer): number | undefined => {
  for (const [algorithm, bytes] of [
    ['sha1', 20],
    ['sha256', 32],
  ] as const) {
    if (index.length < 12 + bytes) continue
    const trailer = index.subarray(-bytes)
    const digest = createHash(algorithm).update(index.subarray(0, -bytes)).digest()
    if (trailer.equals(digest)) return bytes
  }
  return index.length >= 32 && index.subarray(-20).every(byte => byte === 0) ? 20 : undefined
}

/** An offset as in pack files: seven bits per byte, most significant first. */
const readOffset = (index: Buffer, start: number): { value: number; next: number } | undefined => {
  let value = 0
  for (let at = start; at < Math.min(start + 5, index.length); at++) {
    const byte = index[at]!
    value = value * 128 + (byte & 0x7f)
    if ((byte & 0x80) === 0) return { value, next: at + 1 }
    value++
  }
  return undefined
}

/** With the extension `link`, most entries are in another file. */
const hasSharedPart = (index: Buffer, start: number, end: number): boolean => {
  for (let at = start; at + 8 <= end; at += 8 + index.readUInt32BE(at + 4))
    if (index.toString('latin1', at, at + 4) === 'link') return true
  return false
}
