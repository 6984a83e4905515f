import { encodeEvent } from '../../client/wire-event.ts'
import type { JobEvent } from '../../jobs/job.ts'
import { oneLine } from '../../jobs/visible-text.ts'
import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import { resolveJobId } from '../resolve-id.ts'
import type { Colors } from '../terminal/colors.ts'
import { localTime, shortId } from '../terminal/format.ts'
import { lineWidth, wrap } from '../terminal/wrap.ts'

export default defineCommand({
  usage: '[flags] [ID]',
  takesJobs: true,
  flags: {
    follow: { type: 'boolean', short: 'f', summary: 'Follow new events; the default without an ID' },
    json: { ...JSON_FLAG, summary: 'Print JSON; one event per line when following' },
  },
  async run(context, { flags, args }) {
    const client = await context.client()
    const id = args[0] === undefined ? undefined : await resolveJobId(client, args[0])
    const show = (event: JobEvent) => context.print(line(event, context.colors, lineWidth(context.out)))
    if (id !== undefined && !flags.follow) {
      const events = await client.events(id)
      if (flags.json) return context.printJson(events.map(encodeEvent))
      for (const event of events) await show(event)
      return 0
    }
    const options = { ...(id !== undefined && { id, after: 0 }), signal: context.out.closed }
    for await (const event of client.followEvents(options))
      if (flags.json) await context.print(`${JSON.stringify(encodeEvent(event))}\n`)
      else await show(event)
    return 0
  },
})

const line = (event: JobEvent, { dim, cyan }: Colors, width: number): string => {
  const at = localTime(event.at)
  const data = Object.entries(event.data).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const id = shortId(event.jobId)
  const start = `${at} ${id} ${event.type} `
  const rest = wrap(start + oneLine(data.join(' '), 300), width, 4).slice(start.length)
  return `${dim(at)} ${id} ${cyan(event.type)} ${rest}\n`
}
