import { defineCommand } from '../command.ts'
import { isManifestFile } from '../manifest/read.ts'
import { submitFromInput } from '../submit-manifest.ts'
import { MANIFEST_FLAGS } from './job-flags.ts'

export default defineCommand({
  usage: '[flags] -- COMMAND [ARG…]',
  description: 'The job is stored when its id is printed. It runs whatever happens to this shell.',
  examples: [
    ['id=$(deputy submit -- make test)', 'and later: deputy result "$id"'],
    ['deputy submit --manifest - < job.json', 'a manifest from stdin'],
  ],
  flags: {
    ...MANIFEST_FLAGS,
    patch: { type: 'boolean', summary: 'Return the changes to --workspace as a patch' },
  },
  stopAt: word => !isManifestFile(word),
  async run(context, input) {
    const { job } = await submitFromInput(context, input, { command: 'submit', patch: input.flags.patch })
    return input.flags.json ? context.printJson(job) : context.print(`${job.job_id}\n`)
  },
})
