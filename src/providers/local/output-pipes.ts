import { execFileSync } from 'node:child_process'
import { constants, openSync, unlinkSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'

interface OutputPipe {
  readonly reader: Socket
  /** Passed to the child. Close it in this process after the spawn. */
  readonly writeFd: number
}

/** Opens a pipe that is never used for another machine. */
export type OpenPipe = () => OutputPipe

/** Node cannot create FIFOs. `mkfifo` creates many at once, because its start costs more than its work. */
const BATCH = 64

/**
 * Node gives children sockets, which a job cannot open as /dev/stdout. A named pipe can be opened, so the job
 * gets what a shell would give it. Each pipe serves one machine and is unlinked when it is opened: a job owns
 * its pipe and may change its mode or keep reading from it, which must not affect the next job.
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
