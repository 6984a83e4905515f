import { spawn } from 'node:child_process'
import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { damaged } from '../store/database.ts'
import { quickCheck } from '../store/quick-check.ts'

export interface CheckOptions {
  readonly path: string
  readonly log: Logger
  readonly signal: AbortSignal
}

export interface DatabaseCheck {
  /** Rejects when the background check finds damage; never resolves. */
  readonly damage: Promise<never>
}

/** About a second to read on a slow disk. A larger database is checked while the daemon serves. */
const FOREGROUND_BYTES = 64 * 1024 * 1024
const TIMEOUT_MS = 600_000
const DAMAGED_STATUS = 3

/**
 * Checks the database for damage before it is used, and throws if it is damaged. When a background check finds
 * damage, the next start checks the database first, whatever its size.
 */
export const checkDatabase = ({ path, log, signal }: CheckOptions): DatabaseCheck => {
  const suspect = `${path}.suspect`
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size === undefined) rmSync(suspect, { force: true })
  else if (size <= FOREGROUND_BYTES || existsSync(suspect)) {
    quickCheck(path)
    rmSync(suspect, { force: true })
  } else return { damage: checkInBackground({ path, log, signal }, () => writeFileSync(suspect, '')) }
  return { damage: new Promise(() => {}) }
}

const checkInBackground = ({ path, log, signal }: CheckOptions, onDamage: () => void): Promise<never> =>
  new Promise((_, reject) => {
    const main = fileURLToPath(new URL('../store/quick-check-main.js', import.meta.url))
    const child = spawn(process.execPath, [main, path], {
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: TIMEOUT_MS,
    })
    const stop = (): void => void child.kill('SIGKILL')
    signal.addEventListener('abort', stop, { once: true })
    if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW)
    let stderr = ''
    child.stderr.on('data', chunk => {
      stderr += chunk
    })
    child.once('error', error => log.warn({ err: error }, 'cannot check the database'))
    child.once('close', code => {
      signal.removeEventListener('abort', stop)
      if (code === DAMAGED_STATUS) {
        onDamage()
        reject(damaged(path, stderr))
      } else if (code !== 0 && !signal.aborted) log.warn({ code }, 'the database check did not finish')
    })
  })
