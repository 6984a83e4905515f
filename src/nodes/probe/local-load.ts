import { accessSync, constants } from 'node:fs'
import { readFile, statfs } from 'node:fs/promises'
import {
  arch,
  availableParallelism,
  cpus,
  freemem,
  homedir,
  hostname,
  loadavg,
  platform,
  totalmem,
} from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { normalizeArch, normalizeOs } from '../platform.ts'

interface LocalLoad {
  cpu: number
  memory: number
  load: number
  cores: number
  disk: number
}

/** Measures the load of this computer without starting a process, over 100 ms or since an earlier measurement. */
export const measureLocal = async (signal: AbortSignal, since?: Ticks): Promise<LocalLoad> => {
  const before = since ?? ticks()
  if (!since) await sleep(100, undefined, { signal })
  const after = ticks()
  const all = after.all - before.all
  const [available, disk] = await Promise.all([availableMemory(), diskUse()])
  return {
    cpu: all > 0 ? Math.round(((after.busy - before.busy) / all) * 1000) / 10 : 0,
    memory: Math.round((1 - available / totalmem()) * 1000) / 10,
    load: loadavg()[0] ?? 0,
    cores: availableParallelism(),
    disk,
  }
}

export interface LocalMonitor {
  /** The load of this computer, at most 5 seconds old. Frequent callers get the last measurement at once. */
  load(): Promise<LocalLoad>
  /** Whether a program is in PATH. */
  has(program: string): boolean
}

const LOCAL_FRESH_MS = 5_000
/** An average over a longer time says little about the current load. */
const LOCAL_SPAN_MS = 30_000

export const createLocalMonitor = (signal: AbortSignal, path = process.env.PATH): LocalMonitor => {
  let known: { load: LocalLoad; at: number; ticks: Ticks } | undefined
  let measuring: Promise<LocalLoad> | undefined
  const measure = async (): Promise<LocalLoad> => {
    const recent = known && Date.now() - known.at < LOCAL_SPAN_MS ? known.ticks : undefined
    const load = await measureLocal(signal, recent)
    known = { load, at: Date.now(), ticks: ticks() }
    return load
  }
  return {
    load: async () => {
      if (known && Date.now() - known.at < LOCAL_FRESH_MS) return known.load
      measuring ??= measure().finally(() => {
        measuring = undefined
      })
      return measuring
    },
    has: program =>
      /^[\w.+-]+$/.test(program) &&
      (path ?? '')
        .split(delimiter)
        .some(directory => directory !== '' && isProgram(join(directory, program))),
  }
}

const isProgram = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

export const localTraits = (): { os: string; arch: string; hostName: string } => ({
  os: normalizeOs(platform()),
  arch: normalizeArch(arch()),
  hostName: hostname(),
})

interface Ticks {
  busy: number
  all: number
}

const ticks = (): Ticks => {
  let busy = 0
  let all = 0
  for (const { times } of cpus()) {
    busy += times.user + times.nice + times.sys + times.irq
    all += times.user + times.nice + times.sys + times.irq + times.idle
  }
  return { busy, all }
}

/** `freemem` in Node 20 does not count memory that Linux can reclaim, such as the page cache. */
const availableMemory = async (): Promise<number> => {
  const text = await readFile('/proc/meminfo', 'utf8').catch(() => '')
  const kibibytes = /^MemAvailable:\s+(\d+)/m.exec(text)?.[1]
  return kibibytes === undefined ? freemem() : Number(kibibytes) * 1024
}

const diskUse = async (): Promise<number> => {
  const info = await statfs(homedir()).catch(() => undefined)
  return info && info.blocks > 0 ? Math.round((1 - info.bavail / info.blocks) * 1000) / 10 : 0
}
