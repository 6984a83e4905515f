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
import { setTimeout as sleep } from 'node:timers/promises'
import { normalizeArch, normalizeOs } from '../platform.ts'

export interface LocalLoad {
  cpu: number
  memory: number
  load: number
  cores: number
  disk: number
}

/** How this computer fares, without starting a process. */
export const measureLocal = async (signal: AbortSignal): Promise<LocalLoad> => {
  const before = ticks()
  await sleep(100, undefined, { signal })
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
  /** What is known now, without waiting; old knowledge is renewed behind the caller's back. */
  peek(): LocalLoad | undefined
}

const LOCAL_FRESH_MS = 5_000

export const createLocalMonitor = (signal: AbortSignal): LocalMonitor => {
  let known: { load: LocalLoad; at: number } | undefined
  let running = false
  const renew = (): void => {
    if (running || signal.aborted) return
    running = true
    measureLocal(signal)
      .then(
        load => {
          known = { load, at: Date.now() }
        },
        () => undefined,
      )
      .finally(() => {
        running = false
      })
  }
  return {
    peek: () => {
      if (!known || Date.now() - known.at > LOCAL_FRESH_MS) renew()
      return known?.load
    },
  }
}

export const localTraits = (): { os: string; arch: string; hostName: string } => ({
  os: normalizeOs(platform()),
  arch: normalizeArch(arch()),
  hostName: hostname(),
})

const ticks = (): { busy: number; all: number } => {
  let busy = 0
  let all = 0
  for (const { times } of cpus()) {
    busy += times.user + times.nice + times.sys + times.irq
    all += times.user + times.nice + times.sys + times.irq + times.idle
  }
  return { busy, all }
}

/** `freemem` of Node 20 leaves out what Linux would give back at once. */
const availableMemory = async (): Promise<number> => {
  const text = await readFile('/proc/meminfo', 'utf8').catch(() => '')
  const kibibytes = /^MemAvailable:\s+(\d+)/m.exec(text)?.[1]
  return kibibytes === undefined ? freemem() : Number(kibibytes) * 1024
}

const diskUse = async (): Promise<number> => {
  const info = await statfs(homedir()).catch(() => undefined)
  return info && info.blocks > 0 ? Math.round((1 - info.bavail / info.blocks) * 1000) / 10 : 0
}
