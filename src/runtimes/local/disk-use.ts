import { closeSync, constants, openSync, statfsSync } from 'node:fs'

/** What a machine holds in the file systems its jobs write to, however many names or none its files have. */
export interface DiskUse {
  readonly bytes: number
  /** No page is left in one of them. */
  readonly full: boolean
  /** No file can be made any more in one of them. */
  readonly outOfFiles: boolean
}

export interface Disks {
  /** Null when they cannot be looked at. */
  use(): DiskUse | null
  close(): void
}

/** Opened before a job runs, so that nothing a job does to its processes hides them. */
export const openDisks = (pid: number | undefined, paths: readonly string[]): Disks => {
  const fds: number[] = []
  try {
    if (pid !== undefined)
      for (const path of paths)
        fds.push(openSync(`/proc/${pid}/root${path}`, constants.O_RDONLY | constants.O_DIRECTORY))
  } catch {
    // The machine has ended meanwhile.
  }
  let open = fds.length > 0 && fds.length === paths.length
  return {
    use: () => {
      if (!open) return null
      const all = fds.map(fd => statfsSync(`/proc/self/fd/${fd}`))
      return {
        bytes: all.reduce((sum, { blocks, bfree, bsize }) => sum + (blocks - bfree) * bsize, 0),
        full: all.some(({ bavail }) => bavail === 0),
        outOfFiles: all.some(({ ffree }) => ffree === 0),
      }
    },
    close: () => {
      open = false
      for (const fd of fds.splice(0)) closeSync(fd)
    },
  }
}
