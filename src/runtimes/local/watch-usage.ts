import type { LocalMachine } from './local-machine.ts'
import { measureMemory } from './process-memory.ts'
import { signalAll } from './process-tree.ts'
import type { MachineLimits } from './shim-protocol.ts'

export interface UsageWatch {
  /** Set when the job used more memory than it may, and was ended for it. */
  readonly memoryExceeded: boolean
  readonly processesExceeded: boolean
  /** The job is over. What it left in a kept machine is still watched, but less often. */
  jobEnded(): void
}

/** Reading one file of a cgroup costs little, going through all processes of the computer does not. */
const CGROUP_MS = 50
const PROCESSES_MS = 100
const BETWEEN_JOBS_MS = 1000
/** A job that still has its memory after so many looks ends with its machine. */
const KILL_MACHINE_AFTER_MS = 1000
/** Those that are just ending. */
const PROCESS_SLACK = 2

/** The watch of a machine ends when its next job, with limits of its own, begins. */
const watches = new WeakMap<LocalMachine, () => void>()

/**
 * Keeps a job to its memory. The kernel cannot: the files of a sandbox lie in memory, too, and its limit is the sum
 * of both. Where there is no cgroup it is all that limits memory.
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
    // The runner lives on and brings out the files, unless it is where the memory went.
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
  // Files that go or come between the two looks are none of the processes' memory.
  const filesBefore = machine.diskUse()?.bytes ?? disk
  const unreclaimable = cgroup.unreclaimable()
  const files = Math.max(filesBefore, machine.diskUse()?.bytes ?? disk)
  return unreclaimable - files > memory
}
