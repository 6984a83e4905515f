import type { Box } from './local-machine.ts'
import { memoryOf } from './process-memory.ts'
import { signalAll } from './process-tree.ts'
import type { MachineLimits } from './shim-protocol.ts'

export interface Watched {
  /** Set when the job used more memory than it may, and was ended for it. */
  readonly memoryExceeded: boolean
  readonly processesExceeded: boolean
  /** The job is over. What it left in a kept machine is still watched, but less often. */
  end(): void
}

/** Reading one file of a cgroup costs little, going through all processes of the computer does not. */
const CGROUP_MS = 50
const PROCESSES_MS = 100
const BETWEEN_JOBS_MS = 1000
/** A job that still has its memory after so many looks ends with its machine. */
const PATIENCE_MS = 1000
/** Those that are just ending. */
const PROCESS_SLACK = 2

/** The watch of a machine ends when its next job, with limits of its own, begins. */
const watches = new WeakMap<Box, () => void>()

/**
 * Keeps a job to its memory. The kernel cannot: the files of a sandbox lie in memory, too, and its limit is the sum
 * of both. Where there is no cgroup it is all that limits memory.
 */
export const watchUsage = (box: Box, limits: MachineLimits): Watched => {
  watches.get(box)?.()
  const keeps = box.plan.cgroup?.keeps
  const keepsAll = keeps?.memory && keeps.processes
  const state = { memoryExceeded: false, processesExceeded: false }
  let exceededAt: number | undefined
  const look = () => {
    const processes = keepsAll ? [] : box.processes()
    if (!keeps?.processes && processes.length >= limits.processes - PROCESS_SLACK)
      state.processesExceeded = true
    const exceeds = keeps?.memory
      ? cgroupExceeds(box, limits)
      : memoryOf(processes, limits.memory) > limits.memory
    if (!exceeds) {
      exceededAt = undefined
      return
    }
    state.memoryExceeded = true
    exceededAt ??= performance.now()
    // The runner lives on and brings out the files, unless it is where the memory went.
    signalAll(box.jobProcesses(), 'SIGKILL')
    if (performance.now() - exceededAt > PATIENCE_MS) box.kill()
  }
  let timer: NodeJS.Timeout | undefined
  const every = (ms: number | null) => {
    clearInterval(timer)
    timer = ms === null || !box.plan.ownPids ? undefined : setInterval(look, ms)
  }
  every(keepsAll ? CGROUP_MS : PROCESSES_MS)
  const stop = () => every(null)
  watches.set(box, stop)
  void box.gone.then(() => {
    stop()
    watches.delete(box)
  })
  return {
    get memoryExceeded() {
      return state.memoryExceeded
    },
    get processesExceeded() {
      return state.processesExceeded
    },
    end: () => {
      if (watches.get(box) === stop) every(BETWEEN_JOBS_MS)
    },
  }
}

const cgroupExceeds = (box: Box, { memory, disk }: MachineLimits): boolean => {
  const cgroup = box.plan.cgroup
  if (cgroup === null || cgroup.usage() <= memory) return false
  // Files that go or come between the two looks are none of the processes' memory.
  const filesBefore = box.diskUse()?.bytes ?? disk
  const held = cgroup.held()
  const files = Math.max(filesBefore, box.diskUse()?.bytes ?? disk)
  return held - files > memory
}
