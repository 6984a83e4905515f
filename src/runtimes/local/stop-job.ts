import type { LocalMachine } from './local-machine.ts'
import { signalAll } from './process-tree.ts'

const KILL_ROUNDS = 40
const ROUND_MS = 25

/**
 * Asks a job to end, then ends it, so that the runner lives on and can bring out the files. A job that cannot be
 * ended this way takes the whole machine with it.
 */
export const stopJob = (machine: LocalMachine, graceMs: number, isOver: () => boolean): void => {
  signalAll(machine.jobProcesses(), 'SIGTERM')
  setTimeout(() => {
    if (!isOver()) void killJob(machine, isOver)
  }, graceMs)
}

const killJob = async (machine: LocalMachine, isOver: () => boolean): Promise<void> => {
  for (let round = 0; round < KILL_ROUNDS && !isOver(); round++) {
    const processes = machine.jobProcesses()
    // Stopped first: a process that forks faster than it is listed cannot escape that way.
    signalAll(processes, 'SIGSTOP')
    signalAll(processes, 'SIGKILL')
    await new Promise(resolve => setTimeout(resolve, ROUND_MS))
  }
  if (!isOver()) machine.kill()
}
