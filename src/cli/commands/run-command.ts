import { usage } from '../args/parse.ts'
import { defineCommand } from '../command.ts'
import { exitStatusOf } from '../exit-status.ts'
import { explainEnd } from '../explain-end.ts'
import { isManifestFile } from '../manifest/read.ts'
import { submitFromInput } from '../submit-manifest.ts'
import { MANIFEST_FLAGS, WATCH_FLAGS } from './job-flags.ts'

export default defineCommand({
  name: 'run',
  summary: 'Run a command on an isolated machine and show its output',
  usage: '[flags] -- COMMAND [ARG…]',
  description: `Prints the job's output while it runs and exits with the job's exit status: 124 after a timeout, 128+N after
signal N, 130 after a cancel. Ctrl-C cancels the job; a second Ctrl-C exits without waiting for it.
Several words are passed as an argument list. A single word with shell syntax in it is run as a script.`,
  examples: [
    ['deputy run -- uname -a', 'a command, in an empty workspace without network'],
    [
      "deputy run --timeout 5m --file in.txt --artifact 'out/*' -- 'mkdir out; wc in.txt > out/count'",
      'a script with an input file and an artifact',
    ],
    [
      'deputy run --workspace . --apply -- npx prettier --write .',
      'change a copy of this directory, review the patch, apply it',
    ],
    ['deputy run --agent claude --workspace . "add tests for the parser"', 'an AI agent'],
    ['deputy run job.yaml', 'a manifest'],
  ],
  flags: {
    ...MANIFEST_FLAGS,
    apply: { type: 'boolean', summary: "Show the job's changes to --workspace and apply them" },
    yes: { type: 'boolean', short: 'y', summary: 'Apply without asking' },
    detach: { type: 'boolean', short: 'd', summary: 'Print the job id and exit, as submit does' },
    ...WATCH_FLAGS,
  },
  stopAt: word => !isManifestFile(word),
  async run(context, input) {
    const { flags } = input
    if (flags.apply && flags.workspace === undefined) throw usage('--apply needs --workspace DIR.', 'run')
    if (flags.apply && flags.json) throw usage('--apply and --json cannot be used together.', 'run')
    const { client, job } = await submitFromInput(context, input, { command: 'run', patch: flags.apply })
    if (flags.detach) return flags.json ? context.printJson(job) : context.print(`${job.job_id}\n`)
    const { watchJob } = await import('../watch-job.ts')
    const last = await watchJob(context, client, job, {
      raw: flags.raw,
      quiet: flags.quiet || flags.json,
      mute: flags.json,
    })
    if (flags.json) await context.printJson(await client.result(last.job_id))
    else await explainEnd(context, last)
    if (flags.apply && last.status === 'success') {
      const { reviewPatch } = await import('../patch/review-patch.ts')
      await reviewPatch(context, client, { id: last.job_id, directory: flags.workspace!, yes: flags.yes })
    }
    return exitStatusOf(last)
  },
})
