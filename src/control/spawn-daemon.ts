import { spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type LogHome, openLog } from './daemon-log.ts'

/** A small nursery for garbage: the daemon moves bytes along and must not swell when a job prints a gigabyte. */
export const DAEMON_FLAGS = ['--max-semi-space-size=2']

export interface SpawnedDaemon {
  readonly pid: number | undefined
  /** Set when the process has ended. Status 0: another daemon holds the home. */
  exit: { readonly code: number | null; readonly signal: NodeJS.Signals | null } | undefined
  /** Where its own lines begin in the log. */
  readonly logFrom: number
  kill(): void
}

export interface SpawnOptions {
  readonly env?: NodeJS.ProcessEnv
  /** The program that becomes the daemon, for tests. */
  readonly entry?: string
}

/** Starts a daemon process that outlives this one. */
export const spawnDaemon = (home: LogHome, options: SpawnOptions): SpawnedDaemon => {
  const { fd, size } = openLog(home)
  try {
    const child = spawn(
      process.execPath,
      [...DAEMON_FLAGS, options.entry ?? defaultEntry(), 'daemon', 'run'],
      {
        cwd: '/',
        detached: true,
        stdio: ['ignore', fd, fd],
        env: absoluteHome(options.env ?? process.env),
      },
    )
    const daemon: SpawnedDaemon = {
      pid: child.pid,
      exit: undefined,
      logFrom: size,
      kill: () => void child.kill('SIGTERM'),
    }
    child.once('exit', (code, signal) => {
      daemon.exit = { code, signal }
    })
    child.once('error', () => {
      daemon.exit = { code: null, signal: null }
    })
    child.unref()
    return daemon
  } finally {
    closeSync(fd)
  }
}

const defaultEntry = (): string => fileURLToPath(new URL('../cli/main.js', import.meta.url))

/** The daemon lives in `/`, so a relative home would become another one. */
const absoluteHome = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  env.DEPUTY_HOME ? { ...env, DEPUTY_HOME: resolve(env.DEPUTY_HOME) } : env
