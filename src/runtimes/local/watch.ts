import { readFileSync } from 'node:fs'
import type { Box } from './box.ts'
import type { MachineLimits } from './protocol.ts'

export interface Watched {
  /** Set when the job used more memory than it may, and was ended for it. */
  readonly memoryExceeded: boolean
  readonly processesExceeded: boolean
  end(): void
}

const PERIOD_MS = 100
/** Runner, launcher and what is just ending. */
const PROCESS_SLACK = 4

/**
 * Counts memory and processes of a job where no cgroup does. It looks ten times a second: less than a limit of the
 * kernel, more than none.
 */
export const watchUsage = (box: Box, limits: MachineLimits): Watched => {
  const keeps = box.plan.cgroup?.keeps
  const state = { memoryExceeded: false, processesExceeded: false }
  const look = () => {
    const processes = box.jobProcesses()
    if (processes.length >= limits.processes - PROCESS_SLACK) state.processesExceeded = true
    if (keeps?.memory || !exceeds(processes, limits.memory)) return
    state.memoryExceeded = true
    box.kill()
  }
  const needed = box.plan.ownPids && !(keeps?.memory && keeps.processes)
  const timer = needed ? setInterval(look, PERIOD_MS) : undefined
  return {
    get memoryExceeded() {
      return state.memoryExceeded
    },
    get processesExceeded() {
      return state.processesExceeded
    },
    end: () => clearInterval(timer),
  }
}

/** The cheap figure counts shared pages once per process; only when it is too high the exact one is asked for. */
const exceeds = (pids: readonly number[], limit: number): boolean =>
  sum(pids, resident) > limit && sum(pids, proportional) > limit

const sum = (pids: readonly number[], measure: (pid: number) => number): number =>
  pids.reduce((total, pid) => total + measure(pid), 0)

const resident = (pid: number): number => kilobytes(`/proc/${pid}/status`, /^Rss(?:Anon|Shmem):\s+(\d+)/gm)
const proportional = (pid: number): number =>
  kilobytes(`/proc/${pid}/smaps_rollup`, /^Pss_(?:Anon|Shmem):\s+(\d+)/gm)

const kilobytes = (path: string, pattern: RegExp): number => {
  try {
    let total = 0
    for (const match of readFileSync(path, 'utf8').matchAll(pattern)) total += Number(match[1])
    return total * 1024
  } catch {
    return 0
  }
}
