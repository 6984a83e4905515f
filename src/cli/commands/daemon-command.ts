import { isListening } from '../../client/daemon-info.ts'
import { unknownSubcommand } from '../args/parse.ts'
import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import type { Context } from '../context.ts'
import { daemonStatus } from '../daemon-status.ts'
import { loadDaemon } from '../load-daemon.ts'
import { stopDaemon } from '../stop-daemon.ts'

const VERBS = ['status', 'start', 'stop', 'restart', 'run'] as const

export default defineCommand({
  usage: 'status|start|stop|restart|run',
  description: `One daemon per home owns the jobs; every command and MCP client starts it when none runs. Jobs on this computer
keep running while it is stopped or restarted. A daemon that does not answer is found by its lock; stop and
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
          await context.err.write(
            'a client that follows a job or speaks MCP has already started a new daemon\n',
          )
        return context.print(stopped ? 'stopped\n' : 'no daemon was running\n')
      }
      case 'restart':
        await stopDaemon(context, { ifIdle: flags['if-idle'] })
        await context.client()
        return daemonStatus(context, flags.json)
      default:
        throw unknownSubcommand('daemon', verb, VERBS)
    }
  },
})

/** Runs the background daemon; stdout and stderr are its log. */
const runDaemon = async (context: Context): Promise<number> => {
  const { serve } = await loadDaemon()
  // Two clients may start a daemon at once: the second daemon exits.
  await serve(context)
  return 0
}
