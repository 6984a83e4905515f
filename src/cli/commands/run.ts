import { usage } from '../args/parse.ts'
import { defineCommand } from '../command.ts'
import { exitStatusOf } from '../exit-status.ts'
import { explainEnd } from '../explain-end.ts'
import { isManifestFile } from '../manifest/read.ts'
import { submitFromInput } from '../submit-job.ts'
import { MANIFEST_FLAGS, WATCH_FLAGS } from './job-flags.ts'

export default defineCommand({
  name: 'run',
  summary: 'Run a command on an isolated machine and stay with it',
  usage: '[flags] -- COMMAND [ARG…]',
  description: `Prints the job's output as it comes and exits with the job's own status: 124 when it hit its timeout,
128+N when signal N ended it, 130 when it was cancelled. Ctrl-C cancels the job; a second one only leaves.
Several words are an argument list, passed on exactly; a single word with shell syntax in it is a script.`,
  examples: [
    ['deputy run -- uname -a', 'a command, in an empty workspace without network'],
    [
      "deputy run --timeout 5m --file in.txt --artifact 'out/*' -- 'mkdir out; wc in.txt > out/count'",
      'a script with a file, and what it made',
    ],
    [
      'deputy run --workspace . --apply -- npx prettier --write .',
      'let it change a copy of this directory, look, then apply',
    ],
    ['deputy run --agent claude --workspace . "add tests for the parser"', 'an AI agent'],
    ['deputy run job.yaml', 'a manifest'],
  ],
  flags: {
    ...MANIFEST_FLAGS,
    apply: { type: 'boolean', summary: "Show the job's changes to --workspace and apply them" },
    yes: { type: 'boolean', short: 'y', summary: 'Apply without asking' },
    detach: { type: 'boolean', short: 'd', summary: 'Do not stay: print the id, as submit does' },
    ...WATCH_FLAGS,
  },
  stopAt: word => !isManifestFile(word),
  async run(context, input) {
    const { flags } = input
    if (flags.apply && flags.workspace === undefined)
      throw usage('--apply needs --workspace DIR: the directory that the job works on a copy of.', 'run')
    if (flags.apply && flags.json) throw usage('--apply shows a patch, which --json has no place for.', 'run')
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
      const { reviewPatch } = await import('../patch/review.ts')
      await reviewPatch(context, client, { id: last.job_id, directory: flags.workspace!, yes: flags.yes })
    }
    return exitStatusOf(last)
  },
})
