import { closeSync, constants, openSync, statfsSync } from 'node:fs'

/** Disk usage of a machine's writable file systems. Deleted files that are still open count. */
export interface DiskUse {
  readonly bytes: number
  /** One of the file systems has no free block. */
  readonly full: boolean
  /** One of the file systems has no free inode. */
  readonly outOfFiles: boolean
}

export interface Disks {
  /** Null when the file systems are not accessible. */
  use(): DiskUse | null
  close(): void
}

/** Opens the directories before a job runs, so that the job cannot hide them. */
export const openDisks = (pid: number | undefined, paths: readonly string[]): Disks => {
  const fds: number[] = []
  try {
    if (pid !== undefined)
      for (const path of paths)
        fds.push(openSync(`/proc/${pid}/root${path}`, constants.O_RDONLY | constants.O_DIRECTORY))
  } catch {
    // The machine has exited.
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
