import { parsePatch, type StructuredPatch } from 'diff'
import { AppError } from '../../jobs/errors.ts'
import { isGitInternal } from '../../jobs/paths.ts'

/** What a patch does to one file, with paths relative to the workspace. */
export interface FileChange {
  /** Absent when the file is new. */
  readonly from: string | undefined
  /** Absent when the file is deleted. */
  readonly to: string | undefined
  readonly patch: StructuredPatch
}

/** Reads a patch and refuses any that would reach outside the directory or into git's own files. */
export const parseChanges = (text: string): FileChange[] => {
  let patches: StructuredPatch[]
  try {
    patches = parsePatch(text)
  } catch (error) {
    throw new AppError(
      'invalid',
      `The patch cannot be read: ${error instanceof Error ? error.message : error}.`,
      {
        cause: error,
      },
    )
  }
  return patches
    .filter(patch => patch.oldFileName !== undefined || patch.newFileName !== undefined)
    .map(patch => ({
      from: patch.isCreate ? undefined : pathOf(patch.oldFileName),
      to: patch.isDelete ? undefined : pathOf(patch.newFileName),
      patch,
    }))
}

const pathOf = (name: string | undefined): string | undefined => {
  if (name === undefined || name === '/dev/null') return undefined
  const path = name.replace(/^[ab]\//, '')
  const problem = problemOf(path)
  if (problem === undefined) return path
  throw new AppError('denied', `The patch is refused: '${path}' ${problem}.`, {
    hint: 'Nothing was changed. Look at it with: deputy patch ID',
  })
}

const problemOf = (path: string): string | undefined => {
  const parts = path.split('/')
  if (path === '' || path.includes('\0')) return 'is no file name'
  if (path.startsWith('/')) return 'is absolute'
  if (parts.includes('..')) return 'leaves the directory'
  if (isGitInternal(path)) return "is among git's own files"
  return undefined
}
