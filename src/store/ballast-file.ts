import { randomBytes } from 'node:crypto'
import { rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import type { Ballast } from '../ports.ts'

const BYTES = 8 * 1024 * 1024

/** Opened on a disk that is full already, it is given up at once: the database needs room to open. */
export const openBallast = (path: string): Ballast => {
  const directory = path.slice(0, path.lastIndexOf('/'))
  const freeBytes = (): number => {
    const { bavail, bsize } = statfsSync(directory)
    return bavail * bsize
  }
  let isThere = (statSync(path, { throwIfNoEntry: false })?.size ?? 0) >= BYTES

  const ballast: Ballast = {
    release: () => {
      if (!isThere) return false
      isThere = false
      rmSync(path, { force: true })
      return true
    },
    restore: () => {
      if (isThere) return true
      // Room for more than the file itself, or the next write would give it up again.
      if (freeBytes() < 2 * BYTES) return false
      try {
        // Random, as some file systems store nothing for zeros.
        writeFileSync(path, randomBytes(BYTES), { mode: 0o600 })
        isThere = true
      } catch {
        rmSync(path, { force: true })
      }
      return isThere
    },
  }
  if (freeBytes() < BYTES / 8) ballast.release()
  else ballast.restore()
  return ballast
}
