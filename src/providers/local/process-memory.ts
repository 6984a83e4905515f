import { readdirSync, readFileSync } from 'node:fs'

/**
 * Measures the memory of these processes, counting shared pages once. RSS is cheap but counts
 * shared pages for every process; PSS is exact and is read only when RSS exceeds the limit.
 */
export const measureMemory = (pids: readonly number[], limit: number): number => {
  const living = pids.map(livingThread)
  const upperBound = sum(living, resident)
  return upperBound > limit ? sum(living, tid => proportional(tid) ?? resident(tid)) : upperBound
}

/** When the first thread of a process has exited, only its other threads report the memory. */
const livingThread = (pid: number): number => {
  if (resident(pid) !== undefined) return pid
  return threadsOf(pid).find(tid => resident(tid) !== undefined) ?? pid
}

const threadsOf = (pid: number): number[] => {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number)
  } catch {
    return []
  }
}

const sum = (pids: readonly number[], measure: (pid: number) => number | undefined): number =>
  pids.reduce((total, pid) => total + (measure(pid) ?? 0), 0)

const resident = (pid: number) => kilobytes(`/proc/${pid}/status`, /^Rss(?:Anon|Shmem):\s+(\d+)/gm)
const proportional = (pid: number) => kilobytes(`/proc/${pid}/smaps_rollup`, /^Pss_(?:Anon|Shmem):\s+(\d+)/gm)

/** Undefined when the file has no such line. */
const kilobytes = (path: string, pattern: RegExp): number | undefined => {
  try {
    const found = [...readFileSync(path, 'utf8').matchAll(pattern)]
    return found.length === 0 ? undefined : found.reduce((total, match) => total + Number(match[1]), 0) * 1024
  } catch {
    return undefined
  }
}
