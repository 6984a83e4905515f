import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../jobs/errors.ts'
import { isGitInternal, pathProblem } from '../jobs/paths.ts'

/** Names of files come from the job: refuse those that leave the directory, follow a link, or change git's files. */
export const placeBelow = async (top: string, path: string): Promise<string> => {
  const problem = path.startsWith('/')
    ? 'is absolute'
    : isGitInternal(path)
      ? "is among git's own files"
      : pathProblem(path)
  if (problem !== undefined)
    throw new AppError('denied', `The file '${path}' is refused: its name ${problem}.`)
  const parts = path.split('/')
  for (let i = 1; i < parts.length; i++) {
    const at = join(top, ...parts.slice(0, i))
    if ((await lstat(at).catch(() => undefined))?.isSymbolicLink())
      throw new AppError('denied', `${at} is a symbolic link: nothing is written through it.`)
  }
  return join(top, ...parts)
}
