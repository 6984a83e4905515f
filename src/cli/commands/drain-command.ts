import { setTimeout } from 'node:timers/promises'
import { usage } from '../args/parse.ts'
import { defineCommand } from '../command.ts'

const POLL_MS = 1000

export default defineCommand({
  usage: 'NAME',
  description:
    'The daemon finishes its jobs and claims no more, also after a restart, until you run drain --undo. deputy daemons lists the names.',
  flags: {
    undo: { type: 'boolean', summary: 'Let the daemon claim jobs again' },
    'no-wait': { type: 'boolean', summary: 'Do not wait for its jobs' },
  },
  async run(context, { flags, args }) {
    const [name, ...more] = args
    if (name === undefined || more.length > 0)
      throw usage('Name one daemon. Usage: deputy drain NAME', 'drain')
    const client = await context.client()
    await client.drainDaemon(name, !flags.undo)
    if (flags.undo) return context.print(`${name} claims jobs again\n`)
    if (flags['no-wait']) return context.print(`${name} claims no more jobs\n`)
    for (let last = -1; ; ) {
      const jobs = (await client.daemons()).find(daemon => daemon.name === name)?.jobs ?? 0
      if (jobs === 0) return context.print(`${name} is drained\n`)
      if (jobs !== last) await context.print(`${name} runs ${jobs} ${jobs === 1 ? 'job' : 'jobs'}\n`)
      last = jobs
      await setTimeout(POLL_MS)
    }
  },
})
