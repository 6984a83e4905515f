import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import { resolveJobId } from '../resolve-id.ts'

export default defineCommand({
  usage: '[flags] ID',
  takesJobs: true,
  description:
    'Only jobs that were asked for a patch have one: run --apply, submit --patch, workspace.patch in a manifest.',
  examples: [
    ['deputy patch last > job.patch', 'save it'],
    ['deputy patch --apply . last', 'look at it, and apply it here'],
  ],
  flags: {
    apply: { type: 'string', value: 'DIR', summary: 'Apply it to this directory after asking' },
    yes: { type: 'boolean', short: 'y', summary: 'Apply without asking' },
    json: JSON_FLAG,
  },
  async run(context, { flags, args }) {
    const client = await context.client()
    const id = await resolveJobId(client, args[0])
    const { fetchPatch, reviewPatch } = await import('../patch/review-patch.ts')
    if (flags.apply !== undefined) {
      await reviewPatch(context, client, { id, directory: flags.apply, yes: flags.yes })
      return 0
    }
    const patch = await fetchPatch(client, id)
    if (flags.json) return context.printJson({ job_id: id, patch: new TextDecoder().decode(patch) })
    const { showPatch } = await import('../patch/show.ts')
    await context.out.write(
      context.out.isTTY ? showPatch(new TextDecoder().decode(patch), context.colors) : patch,
    )
    return 0
  },
})
