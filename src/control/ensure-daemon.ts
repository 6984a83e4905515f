import { spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { AppError } from '../jobs/errors.ts'
import { compareVersions } from '../version.ts'
import { type DaemonInfo, isListening } from './daemon-info.ts'
import { logTail, openLog } from './daemon-log.ts'
import { createTransport } from './transport.ts'

export interface DaemonHome {
  readonly socket: string
  readonly stateDir: string
  readonly log: string
}

export interface EnsureOptions {
  /** Ours: an older daemon with nothing to do is replaced, a newer one is used as it is. */
  readonly version: string
  readonly signal?: AbortSignal
  readonly env?: NodeJS.ProcessEnv
  /** The program that becomes the daemon, for tests. */
  readonly entry?: string
  readonly deadlineMs?: number
}

/** A small nursery for garbage: the daemon moves bytes along and must not swell when a job prints a gigabyte. */
export const DAEMON_FLAGS = ['--max-semi-space-size=2']

const START_MS = 30_000
const STOP_MS = 10_000

/** Resolves when a daemon answers on the home's socket; starts one when none does. */
export const ensureDaemon = async (home: DaemonHome, options: EnsureOptions): Promise<void> => {
  const running = await ask(home.socket)
  if (running === 'none') return start(home, options)
  if (running === 'starting') return void (await untilReady(home, options, undefined))
  if (compareVersions(running.version, options.version) >= 0 || !running.idle) return
  if (await stopIdle(home, options.signal)) await start(home, options)
}

/** The daemon's own word, `starting` while it listens without being ready, or `none`. */
const ask = async (socket: string): Promise<DaemonInfo | 'starting' | 'none'> => {
  const transport = createTransport(socket, { connection: 'close' })
  try {
    return await transport.json<DaemonInfo>({ path: '/api/daemon', answerMs: 10_000 })
  } catch {
    return (await isListening(socket)) ? 'starting' : 'none'
  } finally {
    transport.close()
  }
}

const stopIdle = async (home: DaemonHome, signal?: AbortSignal): Promise<boolean> => {
  const transport = createTransport(home.socket, { connection: 'close' })
  try {
    await transport.json({ method: 'POST', path: '/api/daemon/stop', json: { if_idle: true } })
  } catch (error) {
    // It got work meanwhile, or somebody else stopped it first.
    return error instanceof AppError && error.code === 'unavailable'
  } finally {
    transport.close()
  }
  const deadline = performance.now() + STOP_MS
  while (await isListening(home.socket)) {
    if (performance.now() > deadline) return false
    await sleep(20, undefined, signal && { signal })
  }
  return true
}

interface Started {
  readonly pid: number | undefined
  /** Set when it ended: two starters at once are fine, the one that lost leaves. */
  exit: { readonly code: number | null } | undefined
  readonly logFrom: number
  kill(): void
}

const start = async (home: DaemonHome, options: EnsureOptions): Promise<void> => {
  const started = spawnDaemon(home, options)
  const { pid } = await untilReady(home, options, started)
  // Somebody else's is up. Ours may still be on its way, and would take over at the next stop.
  if (pid !== started.pid && started.exit === undefined) started.kill()
}

const spawnDaemon = (home: DaemonHome, options: EnsureOptions): Started => {
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
    const started: Started = {
      pid: child.pid,
      exit: undefined,
      logFrom: size,
      kill: () => void child.kill('SIGTERM'),
    }
    child.once('exit', code => {
      started.exit = { code }
    })
    child.once('error', () => {
      started.exit = { code: null }
    })
    child.unref()
    return started
  } finally {
    closeSync(fd)
  }
}

const untilReady = async (
  home: DaemonHome,
  { deadlineMs = START_MS, signal }: EnsureOptions,
  started: Started | undefined,
): Promise<DaemonInfo> => {
  const deadline = performance.now() + deadlineMs
  for (let pause = 10; ; pause = Math.min(pause * 1.5, 200)) {
    signal?.throwIfAborted()
    if (await isListening(home.socket)) {
      const answer = await ask(home.socket)
      if (typeof answer === 'object') return answer
    }
    // One that found another at work ends with 0: that one will answer.
    if (started?.exit && started.exit.code !== 0)
      throw await notStarted(home, 'The Deputy daemon ended while starting', started)
    if (performance.now() > deadline)
      throw await notStarted(home, `The Deputy daemon was not ready after ${deadlineMs / 1000} s`, started)
    await sleep(pause, undefined, signal && { signal })
  }
}

const notStarted = async (home: DaemonHome, what: string, started: Started | undefined) => {
  const tail = await logTail(home, started?.logFrom)
  return new AppError('unavailable', `${what}.${tail === '' ? '' : ` Its last words:\n${tail}`}`, {
    hint: `Its whole log is ${home.log}. To see it start: deputy serve`,
  })
}

const defaultEntry = (): string => fileURLToPath(new URL('../cli/main.js', import.meta.url))

/** The daemon lives in `/`, so a relative home would become another one. */
const absoluteHome = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  env.DEPUTY_HOME ? { ...env, DEPUTY_HOME: resolve(env.DEPUTY_HOME) } : env
