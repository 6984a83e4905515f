import { parseArgs, usage } from '../args/parse.ts'
import { defineCommand } from '../command.ts'
import { exitStatusOf } from '../exit-status.ts'
import { submitFromInput } from '../submit-manifest.ts'
import { watchToEnd } from '../watch-to-end.ts'
import { MANIFEST_FLAGS, WATCH_FLAGS } from './job-flags.ts'

const { env, secret, timeout, file, artifact, label, json } = MANIFEST_FLAGS

export default defineCommand({
  usage: '[flags] MACHINE -- COMMAND [ARG…]',
  takesJobs: true,
  description: `MACHINE is the id of a kept machine, or of the job that kept it (run --keep). The command is a new job with the
same workspace. Output and exit status are those of deputy run.`,
  examples: [['deputy run --keep -- npm ci && deputy exec last -- npm test', 'two commands, one machine']],
  flags: { timeout, env, secret, file, artifact, label, json, ...WATCH_FLAGS },
  stopAt: () => true,
  async run(context, { flags, args, rest }) {
    const [machine, ...words] = args
    if (machine === undefined)
      throw usage('No machine given. Pass the id of a machine, or of the job that kept it.', 'exec')
    // Parsing stops at the machine, so `--` is among the words.
    const command = rest ?? (words[0] === '--' ? words.slice(1) : words)
    if (command.length === 0) throw usage('No command given. Usage: deputy exec MACHINE -- COMMAND', 'exec')
    const unset = parseArgs({ flags: MANIFEST_FLAGS, argv: [], command: 'exec' }).flags
    const input = { flags: { ...unset, ...flags, machine }, args: [], rest: command }
    const submitted = await submitFromInput(context, input, { command: 'exec' })
    return exitStatusOf(await watchToEnd(context, submitted, flags))
  },
})
