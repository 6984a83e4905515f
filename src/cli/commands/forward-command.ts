import { usage } from '../args/parse.ts'
import { defineCommand } from '../command.ts'
import { onInterrupt } from '../interrupt.ts'
import { resolveJobId } from '../resolve-id.ts'

export default defineCommand({
  usage: '[flags] ID [LOCAL:]PORT',
  takesJobs: true,
  description: `Listens on 127.0.0.1 until the job ends or you press Ctrl-C. LOCAL is the same port unless you give one, and 0
is any free port. Prints the address.`,
  examples: [
    ['deputy forward last 8000', 'look at a web server in the latest job'],
    ['deputy forward last 0:80', 'at a free port of this computer'],
  ],
  flags: {},
  async run(context, { args }) {
    const [text, ports, ...more] = args
    const [, local, port] = /^(?:(\d{1,5}):)?(\d{1,5})$/.exec(ports ?? '') ?? []
    if (text === undefined || port === undefined || more.length > 0)
      throw usage('A job and a port are needed: deputy forward ID [LOCAL:]PORT', 'forward')
    const tooHigh = [local, port].find(number => Number(number) > 65_535)
    if (tooHigh !== undefined) throw usage(`Invalid port '${tooHigh}'.`, 'forward')
    const { forwardPort } = await import('../../client/forward-port.ts')
    const { untilTerminal } = await import('../watch-job.ts')
    const client = await context.client()
    const id = await resolveJobId(client, text)
    const { status } = await client.get(id)
    if (status !== 'running') throw usage(`Job ${id} is not running: ${status}.`, 'forward')
    const forward = await forwardPort(client, id, {
      port: Number(port),
      localPort: Number(local ?? port),
      onError: ({ message, hint }) =>
        void context.err.write(`error: ${message}\n${hint ? `hint: ${hint}\n` : ''}`),
    })
    const leave = new AbortController()
    const interrupts = onInterrupt(
      () => leave.abort(),
      () => leave.abort(),
    )
    try {
      await context.out.write(`http://127.0.0.1:${forward.localPort}\n`)
      const job = await untilTerminal(client, id, leave.signal).catch(error => {
        if (!leave.signal.aborted) throw error
      })
      if (job) await context.err.write(`The job has ended: ${job.status}\n`)
      return 0
    } finally {
      interrupts.dispose()
      await forward.close()
    }
  },
})
