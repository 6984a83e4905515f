import { usage } from '../args/parse.ts'
import type { FlagSpecs, Parsed } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import type { Context } from '../context.ts'
import { exitStatusOf } from '../exit-status.ts'
import { isManifestFile } from '../manifest/read.ts'
import { prepareJob, submitFromInput } from '../submit-manifest.ts'
import { watchToEnd } from '../watch-to-end.ts'
import { MANIFEST_FLAGS, WATCH_FLAGS } from './job-flags.ts'

const RUN_FLAGS = {
  ...MANIFEST_FLAGS,
  apply: { type: 'boolean', summary: "Show the job's changes to --workspace and apply them" },
  yes: { type: 'boolean', short: 'y', summary: 'Apply without asking' },
  detach: { type: 'boolean', short: 'd', summary: 'Print the job id and exit, as submit does' },
  interactive: { type: 'boolean', short: 'it', summary: 'Run in this terminal; a shell without COMMAND' },
  record: { type: 'boolean', summary: "Write what the terminal shows to the job's log (-it)" },
  ...WATCH_FLAGS,
} as const satisfies FlagSpecs

export default defineCommand({
  usage: '[flags] -- COMMAND [ARG…]',
  description: `Prints the job's output while it runs and exits with the job's exit status: 124 after a timeout, 128+N after
signal N, 130 after a cancel. Ctrl-C cancels the job; a second Ctrl-C exits without waiting for it.
Several words are passed as an argument list. A single word with shell syntax in it is run as a script.`,
  examples: [
    ['deputy run -- uname -a', 'a command, in an empty workspace without network'],
    [
      "deputy run --timeout 5m --file in.txt --artifact count -- 'wc in.txt > count'",
      'a script with an input file and an artifact',
    ],
    [
      'deputy run --workspace . --apply -- npx prettier --write .',
      'change a copy of this directory, review the patch, apply it',
    ],
    ['deputy run --agent claude --workspace . "add tests for the parser"', 'an AI agent'],
    ['deputy run job.yaml', 'a manifest'],
    ['deputy run -it --image alpine', 'a shell in a container'],
  ],
  flags: RUN_FLAGS,
  stopAt: word => !isManifestFile(word),
  async run(context, input) {
    const { flags } = input
    if (flags.apply && flags.workspace === undefined) throw usage('--apply needs --workspace DIR.', 'run')
    if (flags.apply && flags.json) throw usage('--apply and --json cannot be used together.', 'run')
    if (flags.interactive) return runInteractive(context, input)
    const submitted = await submitFromInput(context, input, { command: 'run', patch: flags.apply })
    const { client, job } = submitted
    if (flags.detach) return flags.json ? context.printJson(job) : context.print(`${job.job_id}\n`)
    const last = await watchToEnd(context, submitted, flags)
    if (flags.apply && last.status === 'success') {
      const { reviewPatch } = await import('../patch/review-patch.ts')
      await reviewPatch(context, client, { id: last.job_id, directory: flags.workspace!, yes: flags.yes })
    }
    return exitStatusOf(last)
  },
})

/** A job in this terminal. Its own command only holds the machine, so the manifest must ask for no agent. */
const runInteractive = async (context: Context, input: Parsed<typeof RUN_FLAGS>): Promise<number> => {
  const { flags, args, rest } = input
  const { requireTerminal, runJobInTerminal } = await import('../run-in-terminal.ts')
  if (flags.agent !== undefined && flags.agent !== 'script')
    throw usage(`-it runs a command, not the agent '${flags.agent}'.`, 'run')
  for (const name of ['apply', 'json', 'detach', 'manifest'] as const)
    if (flags[name]) throw usage(`-it and --${name} cannot be used together.`, 'run')
  requireTerminal('deputy run without -it', 'run')
  const command = [...args, ...(rest ?? [])]
  const words = command.length > 0 ? { args: [], rest: command } : { args: [], rest: ['terminal'] }
  const { client, manifest } = await prepareJob(context, { flags, ...words }, { command: 'run' })
  const argv = command.length === 1 && manifest.agent === undefined ? ['sh', '-c', command[0]!] : command
  return runJobInTerminal(context, client, manifest, {
    ...(argv.length > 0 && { command: argv }),
    record: flags.record,
  })
}
