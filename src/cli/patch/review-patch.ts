import { buffer } from 'node:stream/consumers'
import type { Client } from '../../client/daemon-client.ts'
import { applyPatch } from '../../files/apply-patch.ts'
import { visible } from '../../jobs/visible-text.ts'
import type { Context } from '../context.ts'
import { quoteArgv } from '../manifest/shell.ts'
import { confirm } from '../terminal/confirm.ts'
import { showPatch } from './show.ts'

/** Shows what a job changed, asks, and applies it. Resolves with whether it was applied. */
export const reviewPatch = async (
  context: Context,
  client: Client,
  options: { id: string; directory: string; yes: boolean },
): Promise<boolean> => {
  const { err, errColors } = context
  const result = await client.result(options.id, { maxBytes: 0 })
  const patch = result.patch === null ? undefined : await fetchPatch(client, options.id)
  if (patch !== undefined && patch.length > 0)
    await err.write(showPatch(new TextDecoder().decode(patch), errColors))
  for (const { path, reason } of result.skipped_artifacts)
    await err.write(errColors.yellow(`not in the patch: ${visible(path)}: ${visible(reason)}\n`))
  if (patch === undefined || patch.length === 0) {
    await err.write(patch === undefined ? 'The job has no patch.\n' : 'The job changed nothing.\n')
    return false
  }
  const later = `deputy patch --apply ${quoteArgv([options.directory])} ${options.id}`
  if (!options.yes) {
    if (!process.stdin.isTTY) {
      await err.write(`Not applied: no terminal to confirm on. Apply it later: ${later}\n`)
      return false
    }
    if (!(await confirm(`Apply this to ${options.directory}?`))) {
      await err.write(`Not applied. Apply it later: ${later}\n`)
      return false
    }
  }
  const files = await applyPatch(patch, options.directory)
  const names = files.length > 5 ? `${files.length} files` : files.map(visible).join(', ')
  await err.write(`${errColors.green('Applied')} to ${options.directory}: ${names}\n`)
  return true
}

export const fetchPatch = async (client: Client, id: string): Promise<Uint8Array> =>
  buffer((await client.openPatch(id)).bytes)
