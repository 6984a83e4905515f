import { readdirSync, readFileSync } from 'node:fs'

interface Proc {
  readonly pid: number
  readonly parent: number
}

/** Every process of this computer with its parent, from the stat files that every kernel has. */
const listProcesses = (): Proc[] =>
  readdirSync('/proc').flatMap(name => {
    if (!/^\d+$/.test(name)) return []
    const stat = readText(`/proc/${name}/stat`)
    if (stat === undefined) return []
    const fields = fieldsOf(stat)
    return hasEnded(fields) ? [] : [{ pid: Number(name), parent: Number(fields[1]) }]
  })

/** From the state on. The command name before it may hold spaces and parentheses. */
const fieldsOf = (stat: string): string[] => stat.slice(stat.lastIndexOf(')') + 2).split(' ')

/** A process whose first thread has ended looks like a zombie while its other threads run. */
const hasEnded = (fields: readonly string[]): boolean => fields[0] === 'Z' && Number(fields[17]) <= 1

/** All descendants of a process, itself not included. */
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

/** The process below `root` that has this id in its own pid namespace, found without a look at all others. */
export const findByInnerPid = (root: number, inner: number): number | undefined => {
  const queue = [root]
  for (let pid = queue.shift(); pid !== undefined; pid = queue.shift()) {
    if (pid !== root && innerPid(pid) === inner) return pid
    const children = readText(`/proc/${pid}/task/${pid}/children`)?.trim()
    if (children) queue.push(...children.split(' ').map(Number))
  }
  return undefined
}

/** The id a process has in its own, innermost pid namespace. */
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
      // Gone meanwhile.
    }
}

/** A zombie counts as gone: it runs nothing, and whoever inherited it will bury it. */
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
