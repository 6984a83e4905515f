import { randomBytes } from 'node:crypto'
import { rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import type { Ballast } from '../ports.ts'

const BYTES = 8 * 1024 * 1024

/**
 * Opens the ballast file. On a disk that is already full the space is released at once, because the database needs room
 * to open.
 */
export const openBallast = (path: string): Ballast => {
  const directory = path.slice(0, path.lastIndexOf('/'))
  const freeBytes = (): number => {
    const { bavail, bsize } = statfsSync(directory)
    return bavail * bsize
  }
  let isReserved = (statSync(path, { throwIfNoEntry: false })?.size ?? 0) >= BYTES

  const ballast: Ballast = {
    release: () => {
      if (!isReserved) return false
      isReserved = false
      rmSync(path, { force: true })
      return true
    },
    restore: () => {
      if (isReserved) return true
      // Require more room than the file needs; otherwise the next write would release it again.
      if (freeBytes() < 2 * BYTES) return false
      try {
        // Random bytes, because some file systems do not allocate space for zeros.
        writeFileSync(path, randomBytes(BYTES), { mode: 0o600 })
        isReserved = true
      } catch {
        rmSync(path, { force: true })
      }
      return isReserved
    },
  }
  if (freeBytes() < BYTES / 8) ballast.release()
  else ballast.restore()
  return ballast
}
