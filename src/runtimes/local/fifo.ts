import { execFile } from 'node:child_process'
import { constants, openSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface OutputPipe {
  readonly reader: Socket
  /** For the child; close it in this process after the spawn. */
  readonly writeFd: number
}

/**
 * Node connects children with sockets, which a job cannot open as /dev/stdout. Named pipes in a private directory
 * can be, so the job gets what it would get from a shell.
 */
export const makeFifos = async (dir: string, names: readonly string[]): Promise<void> => {
  await promisify(execFile)('mkfifo', ['-m', '666', ...names.map(name => join(dir, name))])
}

export const openFifo = (path: string): OutputPipe => {
  const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const writeFd = openSync(path, constants.O_WRONLY)
  return { reader: new Socket({ fd: readFd, readable: true, writable: false }), writeFd }
}
