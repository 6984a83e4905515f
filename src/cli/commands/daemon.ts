import { isListening } from '../../control/daemon-info.ts'
import { didYouMean } from '../../jobs/nearest.ts'
import { usage } from '../args/parse.ts'
import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import type { Context } from '../context.ts'
import { daemonStatus } from '../daemon-status.ts'
import { stopDaemon } from '../stop-daemon.ts'

const VERBS = ['status', 'start', 'stop', 'restart', 'run'] as const

export default defineCommand({
  name: 'daemon',
  summary: 'Look at, stop or restart the daemon',
  usage: 'status|start|stop|restart|run',
  description: `One daemon for each home owns the jobs; every command and MCP client starts it when none runs. Jobs on this
computer outlive it: stop and restart end none of them. A daemon that does not answer is found by its lock; stop and
restart send it SIGTERM, then SIGKILL.`,
  flags: {
    'if-idle': { type: 'boolean', summary: 'stop: only when no job waits or runs' },
    json: JSON_FLAG,
  },
  words: VERBS,
  async run(context, { flags, args }) {
    const [verb = 'status'] = args
    switch (verb) {
      case 'run':
        return runDaemon(context)
      case 'status':
        return daemonStatus(context, flags.json)
      case 'start':
        await context.client()
        return daemonStatus(context, flags.json)
      case 'stop': {
        const stopped = await stopDaemon(context, { ifIdle: flags['if-idle'] })
        if (flags.json) return context.printJson({ stopped })
        if (await isListening(context.home.socket))
          await context.err.write('somebody who follows a job or speaks MCP has started the next one\n')
        return context.print(stopped ? 'stopped\n' : 'no daemon was running\n')
      }
      case 'restart':
        await stopDaemon(context, { ifIdle: flags['if-idle'] })
        await context.client()
        return daemonStatus(context, flags.json)
      default:
        throw usage(`daemon does not know '${verb}'${didYouMean(verb, VERBS) || '.'}`, 'daemon')
    }
  },
})

/** The background daemon itself; its log is whatever stdout and stderr are. */
const runDaemon = async (context: Context): Promise<number> => {
  const { serve } = await import('../serve-daemon.ts')
  // Two starters at once are fine: whoever is second leaves the field to the first.
  await serve(context)
  return 0
}
