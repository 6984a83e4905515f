import { execFileSync, spawn } from 'node:child_process'
import { appendFileSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A directory of the system that every sandbox shows read-only and nobody misses for a while. */
const DIRECTORY = '/usr/games'
const FIFO = join(DIRECTORY, 'ledger')

/**
 * Counts runs by a side effect that no isolation undoes: each run writes its key to a FIFO. A FIFO can be written
 * through a read-only mount and without network. The mount exists in the namespace of this run only.
 */
export interface Ledger {
  /** Shell code that enters a run. */
  entry(key: string): string
  /** Enters a run that cannot reach the FIFO itself. */
  enter(key: string): void
  runs(): ReadonlyMap<string, number>
  readonly pid: number
}

export const openLedger = (file: string): Ledger => {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=755,size=1m', 'ledger', DIRECTORY])
  execFileSync('mkfifo', ['-m', '666', FIFO])
  // Open for reading and writing: it never sees the end of the file.
  const [input, output] = [openSync(FIFO, 'r+'), openSync(file, 'a')]
  const cat = spawn('cat', { stdio: [input, output, 'ignore'] })
  return {
    entry: key => `echo "${key}" > ${FIFO}`,
    enter: key => appendFileSync(FIFO, `${key}\n`),
    runs: () => {
      const counts = new Map<string, number>()
      for (const key of readFileSync(file, 'utf8').split('\n').filter(Boolean))
        counts.set(key, (counts.get(key) ?? 0) + 1)
      return counts
    },
    pid: cat.pid ?? -1,
  }
}
