import { spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type LogHome, openLog } from './daemon-log.ts'

/** A small young generation keeps the daemon's memory low while a job prints gigabytes. */
export const DAEMON_FLAGS = ['--max-semi-space-size=2']

export interface SpawnedDaemon {
  readonly pid: number | undefined
  /** Set when the process has exited. Status 0 means that another daemon holds the home. */
  exit: { readonly code: number | null; readonly signal: NodeJS.Signals | null } | undefined
  /** Offset in the log where the lines of this daemon begin. */
  readonly logFrom: number
  kill(): void
}

export interface SpawnOptions {
  readonly env?: NodeJS.ProcessEnv
  /** The program to start as the daemon, for tests. */
  readonly entry?: string
}

/** Starts a detached daemon process. */
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

/** The daemon's working directory is `/`, so a relative home must be made absolute. */
const absoluteHome = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  env.DEPUTY_HOME ? { ...env, DEPUTY_HOME: resolve(env.DEPUTY_HOME) } : env
