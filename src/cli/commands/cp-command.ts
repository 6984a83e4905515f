import { formatSize } from '../../jobs/sizes.ts'
import { visible } from '../../jobs/visible-text.ts'
import { usage } from '../args/parse.ts'
import { defineCommand } from '../command.ts'
import { resolveMachineId } from '../resolve-id.ts'

const SHOWN = 10

export default defineCommand({
  usage: '[flags] FILE ID:PATH | ID:PATH FILE',
  takesJobs: true,
  description: `ID is a running job, a kept machine, or the job that kept it. PATH is relative to the workspace. Directories
are copied with everything in them, but without .git. An existing directory gets the copy under its own name.`,
  examples: [
    ['deputy cp fix.patch last:', 'into the workspace of the latest job'],
    ['deputy cp last:build/report.html .', 'and back'],
  ],
  flags: {
    force: { type: 'boolean', short: 'f', summary: 'Replace files of this computer' },
  },
  async run(context, { flags, args }) {
    const [from, to, ...more] = args
    if (from === undefined || to === undefined || more.length > 0)
      throw usage('Two paths are needed: FILE ID:PATH, or ID:PATH FILE.', 'cp')
    const [source, target] = [remotePath(from), remotePath(to)]
    const { id, path } = source ?? target ?? {}
    if (id === undefined || path === undefined || (source && target))
      throw usage('Exactly one of the two paths must be in a machine: ID:PATH.', 'cp')
    const { downloadPath, uploadPath } = await import('../../client/copy-files.ts')
    const client = await context.client()
    const machineId = await resolveMachineId(client, id)
    if (target) {
      await uploadPath(client, { machineId, local: from, remote: path })
      return 0
    }
    const { files, bytes, skipped } = await downloadPath(client, {
      ...{ machineId, local: to, remote: path, force: flags.force },
    })
    await context.err.write(`${files} ${files === 1 ? 'file' : 'files'}, ${formatSize(bytes)}\n`)
    for (const name of skipped.slice(0, SHOWN))
      await context.err.write(`left out: ${visible(name)}: a link, a device or one of git's files\n`)
    if (skipped.length > SHOWN) await context.err.write(`left out: ${skipped.length - SHOWN} more\n`)
    return 0
  },
})

/** `ID:PATH`. A local path with a colon is written with a slash before it: `./a:b`. */
const remotePath = (text: string): { readonly id: string; readonly path: string } | undefined => {
  const [, id, path] = /^([^/:]+):(.*)$/s.exec(text) ?? []
  return id === undefined || path === undefined ? undefined : { id, path }
}
