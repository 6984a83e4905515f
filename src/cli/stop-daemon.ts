import { setTimeout as sleep } from 'node:timers/promises'
import { isListening } from '../client/daemon-info.ts'
import { findDaemonPid } from '../client/daemon-pid.ts'
import { AppError } from '../jobs/errors.ts'
import type { Context } from './context.ts'

/** How long a daemon may take to end once it was asked to, and once it got SIGTERM. */
const STOP_MS = 30_000
const SIGTERM_MS = 10_000
const SIGKILL_MS = 5_000

/**
 * Ends the daemon of this home: by asking it, else by SIGTERM, else by SIGKILL. Resolves with whether one was running,
 * when it is gone. Jobs survive each of these.
 */
export const stopDaemon = async (context: Context, options: { ifIdle: boolean }): Promise<boolean> => {
  const { home } = context
  // By its lock: a daemon that hangs may have lost its socket.
  const holder = findDaemonPid(home)
  const pid = (await isListening(home.socket)) ? await askToStop(context, options) : undefined
  if (pid !== undefined && (await hasEnded(() => isAlive(pid), STOP_MS))) return true
  if (holder === undefined) {
    if (pid !== undefined) throw stillThere(context, pid)
    return false
  }
  const isThere = (): boolean => findDaemonPid(home) === holder
  if (options.ifIdle && isThere()) throw notAnswering(holder)
  for (const [signal, ms] of [
    ['SIGTERM', SIGTERM_MS],
    ['SIGKILL', SIGKILL_MS],
  ] as const) {
    if (!isThere()) return true
    await context.err.write(`the daemon does not answer: sending ${signal} to process ${holder}\n`)
    process.kill(holder, signal)
    if (await hasEnded(isThere, ms)) return true
  }
  throw stillThere(context, holder)
}

/** The pid of the daemon that agreed to stop; undefined when it does not answer. */
const askToStop = async (context: Context, options: { ifIdle: boolean }): Promise<number | undefined> => {
  const client = await context.plainClient()
  try {
    const { pid } = await client.daemon(ANSWER_MS)
    await client.stopDaemon(options)
    return pid
  } catch (error) {
    if (error instanceof AppError && error.code === 'unavailable') return undefined
    throw error
  }
}

const ANSWER_MS = 5_000

const hasEnded = async (isThere: () => boolean, ms: number): Promise<boolean> => {
  const deadline = performance.now() + ms
  while (isThere()) {
    if (performance.now() > deadline) return false
    await sleep(20)
  }
  return true
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

const notAnswering = (pid: number): AppError =>
  new AppError(
    'unavailable',
    `The daemon (process ${pid}) does not answer, so it is unknown whether it is idle.`,
    {
      hint: 'Stop it anyway; jobs keep running: deputy daemon restart',
    },
  )

const stillThere = ({ home }: Context, pid: number): AppError =>
  new AppError('timeout', `The daemon (process ${pid}) has not ended.`, {
    hint: `Its log: ${home.log}. Jobs keep running, so this is safe: kill -9 ${pid}`,
  })
