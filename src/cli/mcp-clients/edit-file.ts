import { mkdir, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { readRegularFile } from '../../files/regular-file.ts'
import { AppError } from '../../jobs/errors.ts'

const MAX_BYTES = 16 * 1024 * 1024

export type Change = 'added' | 'updated' | 'unchanged' | 'removed' | 'absent'

export interface Edit {
  readonly change: Change
  /** The new content; undefined: the file is deleted because nothing is left in it. */
  readonly text: string | undefined
}

/** Applies an edit to a file. A file that does not exist is empty. */
export const editFile = async (file: string, edit: (text: string) => Edit): Promise<Change> => {
  const before = await readOrEmpty(file)
  const { change, text } = edit(before)
  if (text === before) return change
  if (text === undefined) await rm(file, { force: true })
  else await replace(file, text)
  return change
}

const readOrEmpty = (file: string): Promise<string> =>
  readRegularFile(file, { maxBytes: MAX_BYTES, follow: true }).then(
    String,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return ''
      throw new AppError('denied', `${file} cannot be read: ${error.message}.`, { cause: error })
    },
  )

/** Replaces the file atomically and keeps its mode: it may hold other servers' tokens. A link stays a link. */
const replace = async (file: string, text: string): Promise<void> => {
  const target = await realpath(file).catch(() => file)
  await mkdir(dirname(target), { recursive: true })
  const mode = await stat(target).then(
    info => info.mode & 0o777,
    () => 0o600,
  )
  const temporary = `${target}.deputy-${process.pid}`
  await writeFile(temporary, text, { mode, flag: 'wx' })
  await rename(temporary, target)
}
