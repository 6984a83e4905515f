import { type DaemonInfo, isListening } from '../client/daemon-info.ts'
import { findDaemonPid } from '../client/daemon-pid.ts'
import { AppError } from '../jobs/errors.ts'
import type { Context } from './context.ts'
import { age } from './terminal/format.ts'

const ANSWER_MS = 5_000

/** Shows the daemon without starting one. Exits with 1 when none answers, as service managers do. */
export const daemonStatus = async (context: Context, json: boolean): Promise<number> => {
  const { home, colors } = context
  const info = (await isListening(home.socket)) ? await ask(context) : undefined
  if (info === undefined) return notAnswering(context, findDaemonPid(home), json)
  if (json) return context.printJson({ running: true, answers: true, ...info, log: home.log })
  const jobs = Object.entries(info.jobs ?? {}).filter(([, count]) => count > 0)
  const facts = [
    ['pid', `${info.pid}, up ${age(info.started_at)}`],
    ['version', info.version],
    ['socket', info.socket],
    ['url', info.url === null ? 'none' : `${info.url}  (open the console: deputy open)`],
    ['log', home.log],
    ['jobs', jobs.map(([state, count]) => `${count} ${state}`).join(', ') || 'none'],
  ] as const
  return context.print(facts.map(([name, value]) => `${colors.dim(name.padEnd(9))}${value}\n`).join(''))
}

const ask = async (context: Context): Promise<DaemonInfo | undefined> => {
  try {
    return await (await context.plainClient()).daemon(ANSWER_MS)
  } catch (error) {
    if (error instanceof AppError && error.code === 'unavailable') return undefined
    throw error
  }
}

const notAnswering = async (context: Context, pid: number | undefined, json: boolean): Promise<number> => {
  const { home, colors } = context
  if (json)
    await context.printJson({
      running: pid !== undefined,
      ...(pid !== undefined && { answers: false, pid }),
      socket: home.socket,
      log: home.log,
    })
  else
    await context.print(
      [
        pid === undefined
          ? 'not running (any command starts it)'
          : `process ${pid} uses this home but does not answer; restart it: deputy daemon restart`,
        `${colors.dim('log')}      ${home.log}\n`,
      ].join('\n'),
    )
  return 1
}
