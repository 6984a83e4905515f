import type { LocalMachine } from './local-machine.ts'
import { signalAll } from './process-tree.ts'

const KILL_ROUNDS = 40
const ROUND_MS = 25

/**
 * Sends SIGTERM to the job, then kills it. The runner stays alive to collect the files. If the job survives,
 * the whole machine is killed.
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
    // SIGSTOP first, so that no process forks between the listing and the kill.
    signalAll(processes, 'SIGSTOP')
    signalAll(processes, 'SIGKILL')
    await new Promise(resolve => setTimeout(resolve, ROUND_MS))
  }
  if (!isOver()) machine.kill()
}
