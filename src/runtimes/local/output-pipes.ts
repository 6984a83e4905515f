import { execFileSync } from 'node:child_process'
import { constants, openSync, unlinkSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'

export interface OutputPipe {
  readonly reader: Socket
  /** For the child; close it in this process after the spawn. */
  readonly writeFd: number
}

/** Opens a pipe that nobody else has or will ever have. */
export type OpenPipe = () => OutputPipe

/** Node cannot make pipes, so a program makes them: many at once, because starting it costs more than its work. */
const BATCH = 64

/**
 * Node connects children with sockets, which a job cannot open as /dev/stdout. A named pipe can be opened, so the job
 * gets what it would get from a shell. Each pipe serves one machine and loses its name when it is opened: a job owns
 * its pipe and may change its mode or keep reading from it, and the next job must not notice.
 */
export const createPipeFactory = (dir: string): OpenPipe => {
  const names: string[] = []
  let made = 0
  const makeBatch = () => {
    const batch = Array.from({ length: BATCH }, () => join(dir, `pipe-${made++}`))
    execFileSync('mkfifo', ['-m', '666', ...batch], { stdio: 'ignore' })
    names.push(...batch)
  }
  makeBatch()
  return () => {
    if (names.length === 0) makeBatch()
    const path = names.pop()!
    const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const writeFd = openSync(path, constants.O_WRONLY)
    unlinkSync(path)
    return { reader: new Socket({ fd: readFd, readable: true, writable: false }), writeFd }
  }
}
