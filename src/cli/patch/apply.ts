import { AppError } from '../../jobs/errors.ts'
import { workspaceDirectory } from '../workspace/upload.ts'
import { applyOurselves } from './apply-ourselves.ts'
import { applyWithGit, hasGit } from './apply-with-git.ts'
import { parseChanges } from './parse.ts'

/**
 * Applies a patch to a directory, wholly or not at all, and never outside it. Resolves with the files.
 * git does it where there is git: it knows renames, modes and binary patches.
 */
export const applyPatch = async (
  patch: Uint8Array,
  directory: string,
  options: { git?: boolean } = {},
): Promise<string[]> => {
  const top = await workspaceDirectory(directory)
  const changes = parseChanges(new TextDecoder().decode(patch))
  if (changes.length === 0) return []
  if (options.git ?? (await hasGit())) await applyWithGit(patch, top)
  else await applyOurselves(changes, patch, top)
  return [...new Set(changes.flatMap(change => [change.to ?? change.from ?? []].flat()))]
}

export const doesNotApply = (why: string, cause?: unknown): AppError =>
  new AppError('conflict', `The patch does not apply: ${why}. Nothing was changed.`, {
    hint: 'The directory has changed since the job copied it. Save the patch (deputy patch ID > job.patch) and merge it by hand.',
    cause,
  })
