import type { Check, Readiness } from '../../ports.ts'
import { JSON_FLAG } from '../args/spec.ts'
import { checkThisComputer } from '../check-computer.ts'
import { defineCommand } from '../command.ts'
import type { Colors } from '../terminal/colors.ts'
import { visible } from '../terminal/visible.ts'

export default defineCommand({
  name: 'doctor',
  summary: 'Tell what works here and how to mend the rest',
  usage: '[flags]',
  description:
    'Exits with 0 when at least one runtime can take jobs, with 1 when none can. Whether a VM reaches this computer is known only to a VM: --probe boots one as jobs get it, waits for its call, and destroys it. Ctrl-C ends that, and the VM goes too.',
  flags: {
    probe: { type: 'boolean', summary: 'Boot a throw-away VM to see that it can report; takes minutes' },
    json: JSON_FLAG,
  },
  async run(context, { flags }) {
    const { checks, client } = await checkThisComputer(context)
    if (flags.probe && client) await context.err.write('Booting a throw-away machine; this takes minutes.\n')
    const runtimes = client ? await (flags.probe ? client.probe() : client.doctor()) : []
    const ok = runtimes.some(runtime => runtime.ready)
    if (flags.json) await context.printJson({ ok, checks, runtimes })
    else await context.print(report(checks, runtimes, context.colors))
    return ok ? 0 : 1
  },
})

const report = (checks: readonly Check[], runtimes: readonly Readiness[], colors: Colors): string => {
  const sections = [
    `${colors.bold('this computer')}\n${checks.map(check => line(check, colors)).join('')}`,
    ...runtimes.map(runtime => {
      const state = runtime.ready ? colors.green('ready') : colors.yellow('not ready')
      return `${colors.bold(runtime.runtime)} ${state}\n${runtime.checks.map(check => line(check, colors)).join('')}`
    }),
  ]
  const ready = runtimes.filter(runtime => runtime.ready).map(runtime => runtime.runtime)
  const end =
    ready.length > 0
      ? `Jobs can run: ${ready.join(', ')}. Try: deputy run -- echo hello\n`
      : `${colors.red('No runtime can take jobs.')} Do what is named above, then run doctor again.\n`
  return `${sections.join('\n')}\n${end}`
}

const line = (check: Check, colors: Colors): string => {
  const mark = { ok: colors.green('✓'), warning: colors.yellow('!'), failed: colors.red('✗') }[check.status]
  const fix = check.fix === undefined ? '' : `    ${colors.dim('fix:')} ${visible(check.fix)}\n`
  return `  ${mark} ${visible(check.name)}: ${visible(check.message)}\n${fix}`
}
