import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { signalAll } from './process-tree.ts'
import type { CgroupRoot } from './shim-config.ts'

interface CgroupLimits {
  readonly memory: number
  readonly processes: number
  readonly cpu: number
}

export interface Cgroup {
  readonly version: 1 | 2
  /** A process joins by writing its id into each of these. */
  readonly joinFiles: readonly string[]
  /** The limits that the kernel enforces. */
  readonly enforces: { readonly memory: boolean; readonly processes: boolean; readonly cpu: boolean }
  setLimits(limits: CgroupLimits): void
  /** Bytes of memory in use, including reclaimable memory. */
  usage(): number
  /** Bytes of processes and of files in memory, which the kernel cannot reclaim. */
  unreclaimable(): number
  /** CPU time of all processes that were ever in it, in milliseconds; undefined where it is not counted. */
  cpuMs(): number | undefined
  /** How often each limit was hit. */
  events(): { memory: number; processes: number }
  /** Host ids of all processes in it. */
  members(): number[]
  kill(): void
  remove(): Promise<void>
}

const CPU_PERIOD = 100_000

export const createCgroup = (root: CgroupRoot, name: string): Cgroup => {
  const group = root.version === 1 ? createV1(root, name) : createV2(root, name)
  // Keep the counts after the directory is removed.
  let last: ReturnType<Cgroup['events']> | undefined
  return {
    ...group,
    events: () => last ?? group.events(),
    remove: () => {
      last ??= group.events()
      return group.remove()
    },
  }
}

const createV1 = (root: CgroupRoot & { version: 1 }, name: string): Cgroup => {
  const at = (parent: string | null) => (parent === null ? null : join(parent, name))
  const [memory, pids, cpu] = [at(root.memory), at(root.pids), at(root.cpu)]
  // Controllers can share a hierarchy (cpu,cpuacct) and then have the same directory.
  const dirs = [...new Set([memory, pids, cpu].filter(dir => dir !== null))]
  for (const dir of dirs) mkdirSync(dir, { recursive: true })
  return {
    version: 1,
    joinFiles: dirs.map(dir => join(dir, 'cgroup.procs')),
    enforces: { memory: memory !== null, processes: pids !== null, cpu: cpu !== null },
    setLimits: limits => {
      if (memory !== null) {
        // Memory with swap must never be smaller than memory alone, whichever way the limit moves.
        const set = () => writeValue(memory, 'memory.limit_in_bytes', limits.memory)
        tryWriteValue(memory, 'memory.limit_in_bytes', limits.memory)
        tryWriteValue(memory, 'memory.memsw.limit_in_bytes', limits.memory)
        set()
      }
      if (pids !== null) writeValue(pids, 'pids.max', limits.processes)
      if (cpu !== null) {
        writeValue(cpu, 'cpu.cfs_period_us', CPU_PERIOD)
        writeValue(cpu, 'cpu.cfs_quota_us', Math.round(limits.cpu * CPU_PERIOD))
      }
    },
    usage: () => (memory === null ? 0 : readNumber(memory, 'memory.usage_in_bytes')),
    unreclaimable: () =>
      memory === null
        ? 0
        : readCounter(memory, 'memory.stat', 'rss') + readCounter(memory, 'memory.stat', 'shmem'),
    cpuMs: () => {
      const nanoseconds = cpu === null ? 0 : readNumber(cpu, 'cpuacct.usage')
      return nanoseconds === 0 ? undefined : nanoseconds / 1e6
    },
    events: () => ({
      memory: memory === null ? 0 : readCounter(memory, 'memory.oom_control', 'oom_kill'),
      processes: pids === null ? 0 : readCounter(pids, 'pids.events', 'max'),
    }),
    members: () => readMembers(dirs[0]),
    kill: () => killMembers(dirs[0]),
    remove: () => removeCgroups(dirs),
  }
}

const createV2 = (root: CgroupRoot & { version: 2 }, name: string): Cgroup => {
  const dir = join(root.path, name)
  mkdirSync(dir, { recursive: true })
  const has = (controller: string) => root.controllers.includes(controller)
  return {
    version: 2,
    joinFiles: [join(dir, 'cgroup.procs')],
    enforces: { memory: has('memory'), processes: has('pids'), cpu: has('cpu') },
    setLimits: limits => {
      if (has('memory')) {
        writeValue(dir, 'memory.max', limits.memory)
        tryWriteValue(dir, 'memory.swap.max', 0)
      }
      if (has('pids')) writeValue(dir, 'pids.max', limits.processes)
      if (has('cpu')) writeValue(dir, 'cpu.max', `${Math.round(limits.cpu * CPU_PERIOD)} ${CPU_PERIOD}`)
    },
    usage: () => readNumber(dir, 'memory.current'),
    unreclaimable: () => readCounter(dir, 'memory.stat', 'anon') + readCounter(dir, 'memory.stat', 'shmem'),
    cpuMs: () => readCounter(dir, 'cpu.stat', 'usage_usec') / 1000,
    events: () => ({
      memory: has('memory') ? readCounter(dir, 'memory.events', 'oom_kill') : 0,
      processes: has('pids') ? readCounter(dir, 'pids.events', 'max') : 0,
    }),
    members: () => readMembers(dir),
    kill: () => {
      if (!tryWriteValue(dir, 'cgroup.kill', 1)) killMembers(dir)
    },
    remove: () => removeCgroups([dir]),
  }
}

const killMembers = (dir: string | undefined): void => {
  // Members may fork while they are listed: repeat. The pid limit bounds their number.
  for (let round = 0; round < 20; round++) {
    const members = readMembers(dir)
    if (members.length === 0) return
    signalAll(members, 'SIGKILL')
  }
}

export const readMembers = (dir: string | undefined): number[] => {
  if (dir === undefined) return []
  try {
    return readFileSync(join(dir, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

/** Retries, because a cgroup is busy for a moment after its last process has exited. */
export const removeCgroups = async (dirs: readonly string[]): Promise<void> => {
  for (const dir of dirs)
    for (let attempt = 0; attempt < 200; attempt++) {
      try {
        rmdirSync(dir)
        break
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') break
        killMembers(dir)
        await new Promise(resolve => setTimeout(resolve, 10))
      }
    }
}

const writeValue = (dir: string, file: string, value: number | string): void =>
  writeFileSync(join(dir, file), String(value))

const tryWriteValue = (dir: string, file: string, value: number | string): boolean => {
  try {
    writeValue(dir, file, value)
    return true
  } catch {
    return false
  }
}

const readNumber = (dir: string, file: string): number => {
  try {
    return Number(readFileSync(join(dir, file), 'utf8'))
  } catch {
    return 0
  }
}

const readCounter = (dir: string, file: string, key: string): number => {
  try {
    const text = readFileSync(join(dir, file), 'utf8')
    return Number(new RegExp(`^${key} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
  } catch {
    return 0
  }
}
