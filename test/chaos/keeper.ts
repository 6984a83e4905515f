import { spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DAEMON_FLAGS } from '../../src/client/spawn-daemon.ts'
import { daemons } from './processes.ts'
import { CLI, type World } from './world.ts'

/** Starts the daemon again whenever there is none, unless a command of the user was faster. */
export interface Keeper {
  /** Environment of the next daemon that is started here. */
  next(env: Readonly<Record<string, string>>): void
  start(): void
  close(): void
}

const LOOK_MS = 250

export const keepDaemon = (world: World): Keeper => {
  let once: Readonly<Record<string, string>> = {}
  const start = (): void => {
    const fd = openLog(world)
    const child = spawn(process.execPath, [...DAEMON_FLAGS, CLI, 'daemon', 'run'], {
      cwd: '/',
      detached: true,
      stdio: ['ignore', fd, fd],
      env: { ...world.env, ...once },
    })
    child.unref()
    child.on('error', error => world.journal.violation(`the daemon cannot be started: ${error.message}`))
    closeSync(fd)
    once = {}
  }
  const timer = setInterval(() => {
    if (daemons().length === 0) start()
  }, LOOK_MS)
  return {
    next: env => {
      once = env
    },
    start,
    close: () => clearInterval(timer),
  }
}

/** The log lies on the disk that gets full, as that of a user does. */
const openLog = ({ home, kept }: World): number => {
  try {
    mkdirSync(dirname(home.log), { recursive: true, mode: 0o700 })
    return openSync(home.log, 'a', 0o600)
  } catch {
    return openSync(join(kept, 'daemon-full-disk.log'), 'a')
  }
}
