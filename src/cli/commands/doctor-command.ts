import { JSON_FLAG } from '../args/spec.ts'
import { checkThisComputer } from '../check-computer.ts'
import { defineCommand } from '../command.ts'
import { doctorReport } from '../doctor-report.ts'
import { lineWidth } from '../terminal/wrap.ts'

export default defineCommand({
  usage: '[flags]',
  description:
    'Exits with 0 when at least one runtime can take jobs, with 1 when none can. Use --probe to check that VMs can reach this computer: it boots a temporary VM, waits for its callback and destroys it. Ctrl-C also destroys the VM.',
  flags: {
    probe: {
      type: 'boolean',
      summary: 'Boot a temporary VM to check that it reaches this computer; takes minutes',
    },
    json: JSON_FLAG,
  },
  async run(context, { flags }) {
    const { checks, client } = await checkThisComputer(context)
    if (flags.probe && client) await context.err.write('Booting a temporary VM; this takes minutes.\n')
    const runtimes = client ? await (flags.probe ? client.probe() : client.doctor()) : []
    const ok = runtimes.some(runtime => runtime.ready)
    if (flags.json) await context.printJson({ ok, checks, runtimes })
    else await context.print(doctorReport(checks, runtimes, context.colors, lineWidth(context.out)))
    return ok ? 0 : 1
  },
})
