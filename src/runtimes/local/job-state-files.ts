import { open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { flushToDisk } from '../../files/flush.ts'
import type { ShimResult } from './shim-protocol.ts'

const RESULT_FILE = 'exit.json'
const STARTED_FILE = 'started'
const LONGEST_PAUSE_MS = 5000

/**
 * From here on the command may run, and whoever finds this file must not start it again. It is on disk before the
 * command runs: a job that began just before a power cut is not taken for one that never did. Undefined when another
 * process was first.
 */
export const markStarted = async (dir: string): Promise<number | undefined> => {
  const path = join(dir, STARTED_FILE)
  const now = Date.now()
  try {
    await writeFlushed(path, String(now), 'wx')
    await flushToDisk(dir)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return undefined
    await rm(path, { force: true })
    throw error
  }
  return now
}

/** An empty one counts: a power cut can take the content of a file and leave its name. */
export const readStarted = async (dir: string): Promise<number | undefined> => {
  const text = await readFile(join(dir, STARTED_FILE), 'utf8').catch(() => undefined)
  return text === undefined ? undefined : Number(text) || Date.now()
}

/**
 * Resolves when the result is on disk. On a full disk it is kept and tried again, until there is room or nobody needs
 * it any more: the signal, or the directory is gone.
 */
export const saveResult = async (dir: string, result: ShimResult, signal: AbortSignal): Promise<void> => {
  const path = join(dir, RESULT_FILE)
  for (let pause = 100; !signal.aborted; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    try {
      await writeFlushed(`${path}.tmp`, JSON.stringify(result), 'w')
      await rename(`${path}.tmp`, path)
      await flushToDisk(dir)
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
      await delay(pause, undefined, { signal }).catch(() => {})
    }
  }
}

/** Undefined for one that a power cut has damaged, too: then its end is not known. */
export const readResult = async (dir: string): Promise<ShimResult | undefined> => {
  try {
    return JSON.parse(await readFile(join(dir, RESULT_FILE), 'utf8')) as ShimResult
  } catch {
    return undefined
  }
}

const writeFlushed = async (path: string, text: string, flag: 'w' | 'wx'): Promise<void> => {
  const file = await open(path, flag, 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}
