import { open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { flushToDisk } from '../../files/flush.ts'
import { type RunResult, runResult } from '../../runner/run-result.ts'

const RESULT_FILE = 'exit.json'
const STARTED_FILE = 'started'
const LONGEST_PAUSE_MS = 5000

/**
 * Writes the start marker: a job with this file must not be started again. It is on disk before the
 * command runs, so a job that started just before a power cut counts as started. Undefined when another
 * process has written it first.
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

/** Removes the marker of a command that was stopped before it ran. */
export const unmarkStarted = (dir: string): Promise<void> => rm(join(dir, STARTED_FILE), { force: true })

/** An empty marker counts: after a power cut a file can lose its content and keep its name. */
export const readStarted = async (dir: string): Promise<number | undefined> => {
  const text = await readFile(join(dir, STARTED_FILE), 'utf8').catch(() => undefined)
  return text === undefined ? undefined : Number(text) || Date.now()
}

/**
 * Resolves when the result is on disk. On a full disk it retries until there is room, the signal is aborted,
 * or the directory is removed.
 */
export const saveResult = async (dir: string, result: RunResult, signal: AbortSignal): Promise<void> => {
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

/** Undefined when there is no result, or when a power cut has damaged it. */
export const readResult = async (dir: string): Promise<RunResult | undefined> => {
  try {
    return runResult.parse(JSON.parse(await readFile(join(dir, RESULT_FILE), 'utf8')))
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
