import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../jobs/errors.ts'
import { compareVersions } from '../version.ts'
import { type DaemonInfo, isListening } from './daemon-info.ts'
import { logTail } from './daemon-log.ts'
import { createHttpTransport } from './http-transport.ts'
import { type SpawnedDaemon, type SpawnOptions, spawnDaemon } from './spawn-daemon.ts'

export interface DaemonHome {
  readonly socket: string
  readonly stateDir: string
  readonly log: string
}

export interface EnsureOptions extends SpawnOptions {
  /** Version of this client. An older idle daemon is replaced; a newer daemon is used as it is. */
  readonly version: string
  readonly signal?: AbortSignal
  readonly deadlineMs?: number
}

const START_MS = 30_000
const STOP_MS = 10_000
/** Backoff between two starts, so that many clients do not start daemons in a tight loop. */
const RESPAWN_MS = { first: 100, longest: 2000 }

/** Resolves when a daemon answers on the home's socket. Starts one if necessary. */
export const ensureDaemon = async (home: DaemonHome, options: EnsureOptions): Promise<void> => {
  const running = await askDaemon(home.socket)
  if (typeof running === 'object') {
    if (compareVersions(running.version, options.version) >= 0 || !running.idle) return
    if (!(await stopIdle(home, options.signal))) return
  }
  await startUntilReady(home, options)
}

/** The daemon's info, `starting` while it listens but is not ready, or `none`. */
const askDaemon = async (socket: string): Promise<DaemonInfo | 'starting' | 'none'> => {
  const transport = createHttpTransport(socket, { connection: 'close' })
  try {
    return await transport.json<DaemonInfo>({ path: '/api/daemon', answerMs: 10_000 })
  } catch {
    return (await isListening(socket)) ? 'starting' : 'none'
  } finally {
    transport.close()
  }
}

const stopIdle = async (home: DaemonHome, signal?: AbortSignal): Promise<boolean> => {
  const transport = createHttpTransport(home.socket, { connection: 'close' })
  try {
    await transport.json({ method: 'POST', path: '/api/daemon/stop', json: { if_idle: true } })
  } catch (error) {
    // The daemon has got work in the meantime, or another client stopped it first.
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

/**
 * Starts daemons until one answers. A daemon that was killed, or that exited because another daemon held the home, is
 * replaced until the deadline. A daemon that exited with an error is not: the next one would fail the same way.
 */
const startUntilReady = async (home: DaemonHome, options: EnsureOptions): Promise<void> => {
  const { deadlineMs = START_MS, signal } = options
  const deadline = performance.now() + deadlineMs
  const spawned: SpawnedDaemon[] = []
  let respawnMs = RESPAWN_MS.first
  let respawnAt = Number.NEGATIVE_INFINITY
  for (let pause = 10; ; pause = Math.min(pause * 1.5, 200)) {
    signal?.throwIfAborted()
    const answer = (await isListening(home.socket)) ? await askDaemon(home.socket) : 'none'
    if (typeof answer === 'object') return killOthers(answer, spawned)
    const latest = spawned.at(-1)
    if (latest?.exit && isPermanent(latest.exit)) throw await notStarted(home, 'ended while starting', latest)
    if (performance.now() > deadline) {
      const killed = spawned.filter(daemon => daemon.exit?.signal)
      const signal = killed.at(-1)?.exit?.signal
      throw await notStarted(
        home,
        signal
          ? `was killed by ${signal} at ${killed.length} of ${spawned.length} starts`
          : `was not ready after ${deadlineMs / 1000} s`,
        latest,
      )
    }
    const noneStarting = answer === 'none' && (latest === undefined || latest.exit !== undefined)
    if (noneStarting && performance.now() >= respawnAt) {
      spawned.push(spawnDaemon(home, options))
      respawnAt = performance.now() + respawnMs
      respawnMs = Math.min(respawnMs * 2, RESPAWN_MS.longest)
      pause = 10
    }
    await sleep(pause, undefined, signal && { signal })
  }
}

/** Another client's daemon may have answered first. Kill ours, or it would wait for the lock and take over later. */
const killOthers = ({ pid }: DaemonInfo, spawned: readonly SpawnedDaemon[]): void => {
  for (const daemon of spawned) if (daemon.pid !== pid && daemon.exit === undefined) daemon.kill()
}

/** Signals sent by other processes. SIGABRT, SIGTRAP and others are crashes of the daemon itself. */
const KILLED: readonly (NodeJS.Signals | null)[] = ['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP']

const isPermanent = ({ code, signal }: NonNullable<SpawnedDaemon['exit']>): boolean =>
  code !== 0 && !KILLED.includes(signal)

const notStarted = async (home: DaemonHome, what: string, daemon: SpawnedDaemon | undefined) => {
  const tail = await logTail(home, daemon?.logFrom)
  return new AppError(
    'unavailable',
    `The Deputy daemon ${what}.${tail.trim() === '' ? '' : ` The end of its log:\n${tail}`}`,
    { hint: `Read ${home.log}, or start it in the foreground: deputy serve` },
  )
}
