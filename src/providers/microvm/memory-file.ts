import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { AppError } from '../../jobs/errors.ts'
import { MEMORY } from './programs.ts'

/** The memory of a VM, in a file without a name that is gone with the last process that has it open. */
export interface MemoryFile {
  readonly fd: number
  /** Nobody can write to it from now on: VMs that start from it share it, and each has its changes for itself. */
  seal(): Promise<void>
  close(): void
}

/** Node cannot make such a file, perl can. */
export const createMemoryFile = async (bytes: number, signal: AbortSignal): Promise<MemoryFile> => {
  const child = spawn('perl', ['-e', MEMORY, '--', String(bytes)], {
    stdio: ['pipe', 'pipe', 'pipe'],
    signal,
  })
  let said = ''
  child.stderr.on('data', chunk => {
    said += chunk
  })
  const failed = new Promise<never>((_, reject) => {
    child.once('error', reject)
    child.once('close', code => reject(cannotMake(said.trim() || `perl ended with status ${code}`)))
  })
  // It may fail when nobody waits for it.
  failed.catch(() => undefined)
  child.stdin.on('error', () => undefined)
  /** The program answers each command with a line. */
  const line = (): Promise<string> =>
    Promise.race([
      new Promise<string>(resolve => child.stdout.once('data', data => resolve(`${data}`))),
      failed,
    ])
  let fd: number
  try {
    fd = openSync(`/proc/${child.pid}/fd/${Number(await line())}`, 'r+')
  } catch (error) {
    child.kill()
    throw error
  }
  let isClosed = false
  return {
    get fd() {
      // Its number may be that of another file by now.
      if (isClosed) throw new AppError('unavailable', 'The snapshot of VMs was renewed.')
      return fd
    },
    seal: async () => {
      child.stdin.end('seal\n')
      await line()
    },
    close: () => {
      if (isClosed) return
      isClosed = true
      child.stdin.destroy()
      closeSync(fd)
    },
  }
}

const cannotMake = (why: string): AppError =>
  new AppError('unsupported', `Cannot make a file for the memory of a VM: ${why}.`)
