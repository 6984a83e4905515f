import { closeSync, fstatSync, mkdirSync, openSync, renameSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { AppError } from '../jobs/errors.ts'

export interface LogHome {
  readonly stateDir: string
  readonly log: string
}

const LARGEST_BYTES = 8 * 1024 * 1024
const TAIL_BYTES = 4096
const TAIL_LINES = 12

/** Opens the log for a daemon that is about to start; a large log is rotated first. */
export const openLog = (home: LogHome): { fd: number; size: number } => {
  try {
    mkdirSync(home.stateDir, { recursive: true, mode: 0o700 })
    const fd = openSync(home.log, 'a', 0o600)
    const { size } = fstatSync(fd)
    if (size < LARGEST_BYTES) return { fd, size }
    closeSync(fd)
    renameSync(home.log, `${home.log}.1`)
    return { fd: openSync(home.log, 'a', 0o600), size: 0 }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new AppError('denied', `Cannot write the daemon's log: ${why}.`, {
      hint: 'Make the directory writable, or set DEPUTY_HOME to another one.',
      cause: error,
    })
  }
}

/** The last lines written after a position, indented. */
export const logTail = async (home: LogHome, from = 0): Promise<string> => {
  try {
    const file = await open(home.log, 'r')
    try {
      const { size } = await file.stat()
      const position = Math.max(from, size - TAIL_BYTES)
      const { buffer, bytesRead } = await file.read(Buffer.alloc(TAIL_BYTES), 0, TAIL_BYTES, position)
      const lines = buffer.toString('utf8', 0, bytesRead).trimEnd().split('\n').slice(-TAIL_LINES)
      return lines.map(line => `  ${line.slice(0, 300)}`).join('\n')
    } finally {
      await file.close()
    }
  } catch {
    return ''
  }
}
