import type { MachineLimits } from '../../runner/shim-start.ts'
import type { LocalMachine } from './local-machine.ts'
import { measureMemory } from './process-memory.ts'
import { signalAll } from './process-tree.ts'

export interface UsageWatch {
  /** Set when the job exceeded its memory limit and was killed. */
  readonly memoryExceeded: boolean
  readonly processesExceeded: boolean
  /** Call it when the job has ended. Processes left in a kept machine are then checked less often. */
  jobEnded(): void
}

/** Reading one cgroup file is cheap; listing all processes of the computer is not. */
const CGROUP_MS = 50
const PROCESSES_MS = 100
const BETWEEN_JOBS_MS = 1000
/** If the job still exceeds its memory after this time, the machine is killed. */
const KILL_MACHINE_AFTER_MS = 1000
/** Processes that are just exiting. */
const PROCESS_SLACK = 2

/** Stops the watch of a machine when its next job starts, which has its own limits. */
const watches = new WeakMap<LocalMachine, () => void>()

/**
 * Enforces the memory limit of a job. The kernel cannot: the files of a sandbox are in memory, too, and the cgroup
 * limits the sum of both. Without a cgroup this is the only memory limit.
 */
export const watchUsage = (machine: LocalMachine, limits: MachineLimits): UsageWatch => {
  watches.get(machine)?.()
  const enforces = machine.plan.cgroup?.enforces
  const enforcesAll = enforces?.memory && enforces.processes
  const state = { memoryExceeded: false, processesExceeded: false }
  let exceededAt: number | undefined
  const check = () => {
    const processes = enforcesAll ? [] : machine.processes()
    if (!enforces?.processes && processes.length >= limits.processes - PROCESS_SLACK)
      state.processesExceeded = true
    const exceeds = enforces?.memory
      ? cgroupExceeds(machine, limits)
      : measureMemory(processes, limits.memory) > limits.memory
    if (!exceeds) {
      exceededAt = undefined
      return
    }
    state.memoryExceeded = true
    exceededAt ??= performance.now()
    // The runner stays alive to collect the files, unless it holds the memory itself.
    signalAll(machine.jobProcesses(), 'SIGKILL')
    if (performance.now() - exceededAt > KILL_MACHINE_AFTER_MS) machine.kill()
  }
  let timer: NodeJS.Timeout | undefined
  const setPeriod = (ms: number | null) => {
    clearInterval(timer)
    timer = ms === null || !machine.plan.hasPidNamespace ? undefined : setInterval(check, ms)
  }
  setPeriod(enforcesAll ? CGROUP_MS : PROCESSES_MS)
  const stop = () => setPeriod(null)
  watches.set(machine, stop)
  void machine.gone.then(() => {
    stop()
    watches.delete(machine)
  })
  return {
    get memoryExceeded() {
      return state.memoryExceeded
    },
    get processesExceeded() {
      return state.processesExceeded
    },
    jobEnded: () => {
      if (watches.get(machine) === stop) setPeriod(BETWEEN_JOBS_MS)
    },
  }
}

const cgroupExceeds = (machine: LocalMachine, { memory, disk }: MachineLimits): boolean => {
  const cgroup = machine.plan.cgroup
  if (cgroup === null || cgroup.usage() <= memory) return false
  // Files created or deleted between the two readings must not count as memory of processes.
  const filesBefore = machine.diskUse()?.bytes ?? disk
  const unreclaimable = cgroup.unreclaimable()
  const files = Math.max(filesBefore, machine.diskUse()?.bytes ?? disk)
  return unreclaimable - files > memory
}
