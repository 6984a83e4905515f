import { spawn } from 'node:child_process'
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../../jobs/errors.ts'
import { processName } from './qemu-command.ts'

const MAX_STDERR = 4096

/**
 * Starts the command of a VM in a session of its own, so that it outlives the daemon. What it says goes to the file
 * `log`; `fd` becomes its descriptor 3. Resolves when it has ended, with what it said.
 */
export const startQemu = (
  [program = '', ...args]: readonly string[],
  { log, fd }: { readonly log: string; readonly fd?: number | undefined },
): Promise<string> => {
  const output = openSync(log, 'a', 0o600)
  const stdio = ['ignore' as const, output, output, ...(fd === undefined ? [] : [fd])]
  const child = spawn(program, args, { detached: true, stdio })
  closeSync(output)
  child.unref()
  return new Promise(resolve => {
    child.once('error', error => resolve(error.message))
    child.once('exit', () => resolve(tail(log)))
  })
}

const tail = (log: string): string => {
  try {
    return readFileSync(log, 'utf8').slice(-MAX_STDERR).trim()
  } catch {
    return ''
  }
}

/** The processes of a VM, by the name that each of them has among its arguments. */
export const processesOf = async (machineId: string): Promise<number[]> => {
  const name = processName(machineId)
  const pids = readdirSync('/proc').filter(entry => /^\d+$/.test(entry))
  const found = await Promise.all(pids.map(async pid => (await argumentsOf(pid)).includes(name)))
  return pids.filter((_, index) => found[index]).map(Number)
}

const LOOKS = 100
const LOOK_MS = 2

/** A process that is changing its program has no arguments for a moment: look again. */
const argumentsOf = async (pid: string): Promise<string[]> => {
  for (let look = 1; ; look++) {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      if (line !== '' || look === LOOKS) return line.split('\0')
      // Neither a thread of the kernel nor a zombie has a program.
      readlinkSync(`/proc/${pid}/exe`)
    } catch {
      // It has just ended, or belongs to somebody else.
      return []
    }
    await sleep(LOOK_MS)
  }
}

const PAUSE_MS = 20

/** Resolves when nothing of a VM runs any more. */
export const killQemu = async (machineId: string, signal: AbortSignal): Promise<void> => {
  for (;;) {
    const pids = await processesOf(machineId)
    if (pids.length === 0) return
    for (const pid of pids) kill(pid)
    await sleep(PAUSE_MS, undefined, { signal })
  }
}

const kill = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return
    throw new AppError('denied', `Process ${pid} of a VM belongs to another user.`, {
      hint: `Stop it: sudo kill -9 ${pid}`,
    })
  }
}
