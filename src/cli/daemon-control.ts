import { setTimeout as sleep } from 'node:timers/promises'
import { isListening } from '../control/daemon-info.ts'
import { AppError } from '../jobs/errors.ts'
import type { Context } from './context.ts'
import { age } from './terminal/format.ts'

const STOP_MS = 30_000

/** Tells of the daemon without starting one. Exits with 1 when none runs, as service managers do. */
export const daemonStatus = async (context: Context, json: boolean): Promise<number> => {
  const { home, colors } = context
  if (!(await isListening(home.socket))) {
    if (json) await context.printJson({ running: false, socket: home.socket, log: home.log })
    else await context.print(`not running (any command starts it)\n${colors.dim('log')}      ${home.log}\n`)
    return 1
  }
  const info = await (await context.plainClient()).daemon()
  if (json) return context.printJson({ running: true, ...info, log: home.log })
  const jobs = Object.entries(info.jobs ?? {}).filter(([, count]) => count > 0)
  const facts = [
    ['pid', `${info.pid}, up ${age(info.started_at)}`],
    ['version', info.version],
    ['socket', info.socket],
    ['url', info.url ?? 'none'],
    ['log', home.log],
    ['jobs', jobs.map(([state, count]) => `${count} ${state}`).join(', ') || 'none'],
  ] as const
  return context.print(facts.map(([name, value]) => `${colors.dim(name.padEnd(9))}${value}\n`).join(''))
}

/** Resolves with whether one was running, when it is gone; somebody who follows a job may start the next. */
export const stopDaemon = async (context: Context, options: { ifIdle: boolean }): Promise<boolean> => {
  const { socket } = context.home
  if (!(await isListening(socket))) return false
  const client = await context.plainClient()
  const { pid } = await client.daemon()
  await client.stopDaemon(options)
  const deadline = performance.now() + STOP_MS
  while (isAlive(pid)) {
    if (performance.now() > deadline)
      throw new AppError('timeout', `The daemon (process ${pid}) has not ended within ${STOP_MS / 1000} s.`, {
        hint: `Its log: ${context.home.log}. Jobs survive it, so this is safe: kill ${pid}`,
      })
    await sleep(20)
  }
  return true
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Somebody else's process is alive, too.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
