import { realpath, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { AppError } from '../jobs/errors.ts'

/** Resolves links, and refuses the root and the home: uploading or patching them is almost always a mistake. */
export const workspaceDirectory = async (directory: string): Promise<string> => {
  const top = await realpath(directory).catch(() => undefined)
  if (top === undefined || !(await stat(top)).isDirectory())
    throw new AppError('invalid', `The workspace ${directory} is not a directory.`)
  if (top === '/' || top === (await realpath(homedir()).catch(() => undefined)))
    throw new AppError(
      'invalid',
      `The workspace ${directory} is ${top === '/' ? 'the whole disk' : 'your home'}.`,
      {
        hint: 'Give the directory of one project: --workspace DIR',
      },
    )
  return top
}
