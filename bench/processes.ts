import { readdirSync, readFileSync } from 'node:fs'

/** What `/proc` tells of one process. */
export interface ProcessState {
  readonly pid: number
  readonly parent: number
  readonly command: string
  /** Milliseconds of processor time, of itself and of the children that it has waited for. */
  readonly cpu: { readonly own: number; readonly children: number }
}

/** Linux counts in hundredths of a second. */
const TICK_MS = 10

export const listProcesses = (): ProcessState[] =>
  readdirSync('/proc').flatMap(name => {
    if (!/^\d+$/.test(name)) return []
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const ticks = (...at: number[]) => at.reduce((sum, index) => sum + Number(fields[index]) * TICK_MS, 0)
      return [
        {
          pid: Number(name),
          parent: Number(fields[1]),
          command: readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' '),
          cpu: { own: ticks(11, 12), children: ticks(13, 14) },
        },
      ]
    } catch {
      return [] // It has ended.
    }
  })

/** The shims of a home. */
export const shimsOf = (home: string, all = listProcesses()): ProcessState[] =>
  all.filter(({ command }) => command.includes('/shim.js {') && command.includes(home))

/** These processes and all that descend from them. */
export const treeOf = (roots: readonly ProcessState[], all = listProcesses()): ProcessState[] => {
  const known = new Set(roots.map(({ pid }) => pid))
  for (let before = -1; before !== known.size; ) {
    before = known.size
    for (const { pid, parent } of all) if (known.has(parent)) known.add(pid)
  }
  return all.filter(({ pid }) => known.has(pid))
}

/** Bytes in memory, shared pages divided among those that share them. */
export const proportionalMemory = ({ pid }: ProcessState): number => {
  try {
    return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}
