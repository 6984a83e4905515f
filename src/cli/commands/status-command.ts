import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import { describeJob } from '../job-details.ts'
import { resolveJobId } from '../resolve-id.ts'
import { lineWidth } from '../terminal/wrap.ts'

export default defineCommand({
  usage: '[flags] ID',
  takesJobs: true,
  description:
    'An ID can be shortened to six or more characters of its start or end; `last` is the latest job.',
  examples: [['deputy status last --wait', 'wait for the end of the latest job']],
  flags: { wait: { type: 'boolean', short: 'w', summary: 'Wait until the job has ended' }, json: JSON_FLAG },
  async run(context, { flags, args }) {
    const client = await context.client()
    const id = await resolveJobId(client, args[0])
    const { untilTerminal } = await import('../watch-job.ts')
    const job = flags.wait ? await untilTerminal(client, id, context.out.closed) : await client.get(id)
    return flags.json
      ? context.printJson(job)
      : context.print(describeJob(job, context.colors, lineWidth(context.out)))
  },
})
