import { once } from 'node:events'
import { AppError } from '../../jobs/errors.ts'
import { usage } from '../args/parse.ts'
import { defineCommand } from '../command.ts'

export default defineCommand({
  name: 'dev',
  summary: 'Emulate a Proxmox VE cluster on this computer',
  usage: 'pve [flags]',
  description:
    'A cluster on loopback that answers as a real one does, with a template, a pool and a token. Its guests are local processes without isolation: for trying things out, not for the work of others. Ends with Ctrl-C.',
  examples: [['deputy dev pve --port 8006', 'Start it and print the settings that reach it']],
  flags: {
    port: { type: 'number', value: 'PORT', summary: 'Port of the first node (any free one)' },
    nodes: { type: 'number', value: 'N', summary: 'How many nodes (2)' },
    guests: {
      type: 'string',
      choices: ['process', 'none'],
      summary: 'What guests are: processes that run jobs, or nothing that runs (process)',
    },
    slow: { type: 'boolean', summary: 'Take the time that a real cluster takes' },
  },
  words: ['pve'],
  async run(context, { flags, args }) {
    if (args[0] !== 'pve') throw usage('What is to be emulated? deputy dev pve', 'dev')
    const { startEmulator } = await import('../../dev/pve/emulator.ts')
    const { fastGuests } = await import('../../dev/pve/guests/fast.ts')
    const { REAL_TIMING } = await import('../../dev/pve/state.ts')
    const count = Math.min(16, Math.max(1, flags.nodes ?? 2))
    const emulator = await startEmulator({
      nodes: Array.from({ length: count }, (_, index) => `pve${index + 1}`),
      ...(flags.port === undefined ? {} : { port: flags.port }),
      ...(flags.guests === 'none' ? {} : { guests: fastGuests() }),
      ...(flags.slow ? { timing: REAL_TIMING } : {}),
    }).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'EADDRINUSE' ? portTaken(error) : error
    })
    const settings = {
      ...emulator.env(),
      PROXMOX_POOL: 'jobs',
      PROXMOX_SEED_STORAGE: 'seeds',
      CALLBACK_HOST: '127.0.0.1',
    }
    const lines = Object.entries(settings).map(([name, value]) => `export ${name}='${value}'`)
    await context.print(`${lines.join('\n')}\n`)
    await context.err.write(
      `Serving ${count} ${count === 1 ? 'node' : 'nodes'}; root@pam has the password "${emulator.standard.rootPassword}". Ctrl-C ends it.
In another terminal, paste the lines above, then: deputy daemon restart; deputy run --runtime proxmox -- uname -a\n`,
    )
    await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
    await emulator.close()
    return 0
  },
})

/** Each node has a port of its own, from the first one on. */
const portTaken = (cause: NodeJS.ErrnoException & { port?: number }): AppError =>
  new AppError('invalid', `Port ${cause.port} is taken.`, {
    hint: 'Name another one with --port, or leave it out to get free ones.',
    cause,
  })
