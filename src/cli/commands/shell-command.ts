import { usage } from '../args/parse.ts'
import { defineCommand } from '../command.ts'
import { resolveMachineId } from '../resolve-id.ts'

export default defineCommand({
  usage: '[flags] ID [-- COMMAND [ARG…]]',
  takesJobs: true,
  description: `ID is the id of a job or of a machine. The command is bash or sh unless you give one. Its exit status is
that of deputy shell. In the machine of a running job the terminal ends with the job. In a kept machine the terminal is a
job of its own, in the same workspace.`,
  examples: [
    ['deputy shell last', 'look around in the machine of the latest job'],
    ['deputy shell last -- top', 'another program than a shell'],
    ['deputy run --keep -- npm ci && deputy shell last', 'continue by hand in a kept machine'],
  ],
  flags: {
    record: {
      type: 'boolean',
      summary: 'Write what the terminal shows to the log of its job (kept machines)',
    },
  },
  stopAt: () => true,
  async run(context, { flags, args, rest }) {
    const [text, ...words] = args
    if (text === undefined) throw usage('No job given. Usage: deputy shell ID', 'shell')
    // Parsing stops at the id, so `--` is among the words.
    const given = rest ?? (words[0] === '--' ? words.slice(1) : words)
    const command = given.length > 0 ? { command: given } : {}
    const client = await context.client()
    const id = await resolveMachineId(client, text)
    const machine = (await client.machines()).find(({ machine_id }) => machine_id === id)
    const { requireTerminal, runJobInTerminal, terminalVariables } = await import('../run-in-terminal.ts')
    if (machine?.state !== 'busy' || machine.job_id === null) {
      requireTerminal('deputy exec', 'shell')
      return runJobInTerminal(context, client, { machine: id }, { ...command, record: flags.record })
    }
    if (flags.record)
      throw usage('--record needs a terminal that is a job: deputy run -it, or a kept machine.', 'shell')
    const { openShell } = await import('../../client/open-shell.ts')
    const { attachTerminal, sizeOf } = await import('../terminal/attach-terminal.ts')
    const env = terminalVariables(context)
    const isTerminal = process.stdin.isTTY && process.stdout.isTTY
    const shell = isTerminal
      ? await openShell(client, machine.job_id, { ...command, env, terminal: sizeOf(process.stdout) })
      : await client.openSession(machine.job_id, { argv: given.length > 0 ? given : ['sh'], env })
    const code = await attachTerminal(shell, process)
    if (code !== null) return code
    await context.err.write('The machine has ended, and the terminal with it.\n')
    return 1
  },
})
