import { AppError } from '../../jobs/errors.ts'
import { defineCommand } from '../command.ts'
import { loadDaemon } from '../load-daemon.ts'

export default defineCommand({
  usage: '[flags]',
  description: `For service managers, containers and debugging. Listens on a Unix socket and, by default, on 127.0.0.1:8764. Stops
on SIGINT and SIGTERM; jobs on this computer keep running.`,
  flags: {
    host: { type: 'string', value: 'ADDRESS', summary: 'Address to listen on' },
    port: { type: 'number', value: 'N', summary: 'Port to listen on; if it is busy, a free one is used' },
  },
  async run(context, { flags }) {
    const { serve } = await loadDaemon()
    const env = {
      ...context.env,
      ...(flags.host !== undefined && { DEPUTY_HTTP_HOST: flags.host }),
      ...(flags.port !== undefined && { DEPUTY_HTTP_PORT: String(flags.port) }),
    }
    await serve({ ...context, env })
    throw new AppError('conflict', `Another daemon is already running for ${context.home.stateDir}.`, {
      hint: 'Check it: deputy daemon status. Stop it: deputy daemon stop',
    })
  },
})
