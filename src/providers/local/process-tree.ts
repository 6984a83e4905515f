import { readdirSync, readFileSync } from 'node:fs'

interface Proc {
  readonly pid: number
  readonly parent: number
}

/** Lists all processes with their parents from /proc/PID/stat, which every kernel has. */
const listProcesses = (): Proc[] =>
  readdirSync('/proc').flatMap(name => {
    if (!/^\d+$/.test(name)) return []
    const stat = readText(`/proc/${name}/stat`)
    if (stat === undefined) return []
    const fields = fieldsOf(stat)
    return hasEnded(fields) ? [] : [{ pid: Number(name), parent: Number(fields[1]) }]
  })

/** Returns the fields from the state on. The command name before it may contain spaces and parentheses. */
const fieldsOf = (stat: string): string[] => stat.slice(stat.lastIndexOf(')') + 2).split(' ')

/** A process whose first thread has exited looks like a zombie while its other threads run. */
const hasEnded = (fields: readonly string[]): boolean => fields[0] === 'Z' && Number(fields[17]) <= 1

/** Lists all descendants of a process, without the process itself. */
export const descendantsOf = (root: number, processes: readonly Proc[] = listProcesses()): number[] => {
  const children = new Map<number, number[]>()
  for (const { pid, parent } of processes) children.set(parent, [...(children.get(parent) ?? []), pid])
  const found: number[] = []
  const queue = [root]
  for (let pid = queue.pop(); pid !== undefined; pid = queue.pop())
    for (const child of children.get(pid) ?? []) {
      found.push(child)
      queue.push(child)
    }
  return found
}

/** Finds the descendant of `root` with this id in its own pid namespace, without listing all processes. */
export const findByInnerPid = (root: number, inner: number): number | undefined => {
  const queue = [root]
  for (let pid = queue.shift(); pid !== undefined; pid = queue.shift()) {
    if (pid !== root && innerPid(pid) === inner) return pid
    const children = readText(`/proc/${pid}/task/${pid}/children`)?.trim()
    if (children) queue.push(...children.split(' ').map(Number))
  }
  return undefined
}

/** Returns the id of a process in its innermost pid namespace. */
export const innerPid = (pid: number): number | undefined => {
  const line = readText(`/proc/${pid}/status`)?.match(/^NSpid:(.*)$/m)?.[1]
  const last = line?.trim().split(/\s+/).at(-1)
  return last === undefined ? undefined : Number(last)
}

export const signalAll = (pids: readonly number[], signal: NodeJS.Signals): void => {
  for (const pid of pids)
    try {
      process.kill(pid, signal)
    } catch {
      // The process has exited.
    }
}

/** Linux reports CPU times in hundredths of a second. */
const TICK_MS = 10

/** The CPU time of these processes and of children that they have waited for, in milliseconds. */
export const cpuTimeOf = (pids: readonly number[]): number =>
  pids.reduce((total, pid) => {
    const stat = readText(`/proc/${pid}/stat`)
    if (stat === undefined) return total
    const [user = 0, system = 0, childUser = 0, childSystem = 0] = fieldsOf(stat).slice(11, 15).map(Number)
    return total + (user + system + childUser + childSystem) * TICK_MS
  }, 0)

/** A zombie counts as dead: it runs nothing, and its parent will reap it. */
export const isAlive = (pid: number): boolean => {
  const stat = readText(`/proc/${pid}/stat`)
  return stat !== undefined && !hasEnded(fieldsOf(stat))
}

const readText = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
