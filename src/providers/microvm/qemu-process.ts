import { spawn } from 'node:child_process'
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'
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
export const processesOf = (machineId: string): number[] => {
  const name = processName(machineId)
  return readdirSync('/proc')
    .filter(entry => /^\d+$/.test(entry))
    .filter(pid => argumentsOf(pid).includes(name))
    .map(Number)
}

const argumentsOf = (pid: string): string[] => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  } catch {
    // It has just ended, or belongs to somebody else.
    return []
  }
}

const PAUSE_MS = 20

/** Resolves when nothing of a VM runs any more. */
export const killQemu = async (machineId: string, signal: AbortSignal): Promise<void> => {
  for (;;) {
    const pids = processesOf(machineId)
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
