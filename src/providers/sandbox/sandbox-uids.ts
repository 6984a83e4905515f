import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** No distribution, nor systemd, uses this range. */
const HIGH_BASE = 1_900_000_000
/** For containers that map only 65536 ids. */
const LOW_BASE = 61_000
const PER_HOME = 1000
const LOW_PER_HOME = 180

export interface UidRange {
  readonly first: number
  readonly count: number
}

/**
 * The user ids that a root daemon gives to its sandboxes, one each. The kernel checks this id wherever
 * namespaces do not apply, so it must not be root's. Null for an ordinary user, whose own id is used.
 */
export const uidRange = (
  home: string,
  uidMap: string = readFileSync('/proc/self/uid_map', 'utf8'),
): UidRange | null => {
  if (process.getuid?.() !== 0) return null
  const size = Math.max(...uidMap.trim().split('\n').map(lastId))
  const slot = createHash('sha256').update(home).digest().readUInt16LE(0)
  if (size >= HIGH_BASE + 65_536 * PER_HOME) return { first: HIGH_BASE + slot * PER_HOME, count: PER_HOME }
  if (size >= LOW_BASE + LOW_PER_HOME) return { first: LOW_BASE, count: LOW_PER_HOME }
  return null
}

const lastId = (line: string): number => {
  const [inside = 0, , count = 0] = line.trim().split(/\s+/).map(Number)
  return inside + count - 1
}

/**
 * User ids for the machines of one shim, which no range in `used` contains. When there are not enough left, the shim gets
 * one, for one machine; when none is left, it shares the last one.
 */
export const freeUids = (
  range: UidRange | null,
  used: readonly UidRange[],
  count: number,
): UidRange | null => {
  if (range === null) return null
  const end = range.first + range.count
  const isFree = (from: number, to: number) =>
    used.every(({ first, count }) => to <= first || first + count <= from)
  for (let first = range.first; first + count <= end; first += count)
    if (isFree(first, first + count)) return { first, count }
  for (let first = range.first; first < end; first++) if (isFree(first, first + 1)) return { first, count: 1 }
  return { first: end - 1, count: 1 }
}
