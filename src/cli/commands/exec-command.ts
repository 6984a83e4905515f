import { parseArgs, usage } from '../args/parse.ts'
import { defineCommand } from '../command.ts'
import { exitStatusOf } from '../exit-status.ts'
import { explainEnd } from '../explain-end.ts'
import { submitFromInput } from '../submit-manifest.ts'
import { warnAboutArtifacts } from '../warn-about-artifacts.ts'
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
    const { client, manifest, job } = await submitFromInput(context, input, { command: 'exec' })
    const { watchJob } = await import('../watch-job.ts')
    const quiet = flags.quiet || flags.json
    const last = await watchJob(context, client, job, { raw: flags.raw, quiet, mute: flags.json })
    if (flags.json) await context.printJson(await client.result(last.job_id))
    else await explainEnd(context, last)
    if (!quiet) await warnAboutArtifacts(context, client, { job: last, manifest })
    return exitStatusOf(last)
  },
})
