import { open, stat } from 'node:fs/promises'
import { basename, isAbsolute, normalize, sep } from 'node:path'
import { readAtMost } from '../../files/regular-file.ts'
import { AppError } from '../../jobs/errors.ts'
import { LIMITS } from '../../jobs/limits.ts'

interface ManifestFile {
  path: string
  text?: string
  content?: string
  mode?: string
}

/** `--file in.txt` and `--file ./conf/a.json:etc/a.json`. Executable files stay executable. */
export const readFileFlags = (flags: readonly string[]): Promise<ManifestFile[]> =>
  Promise.all(flags.map(readOne))

const readOne = async (flag: string): Promise<ManifestFile> => {
  const { local, as } = await split(flag)
  try {
    const { data, info } = await read(local)
    return { path: as, ...contentOf(data), ...((info.mode & 0o100) !== 0 && { mode: '755' }) }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new AppError('invalid', `--file ${local} cannot be read: ${why}.`, { cause: error })
  }
}

/** A pipe is fine, as in `--file <(command)`: the user named it. */
const read = async (path: string) => {
  const handle = await open(path)
  try {
    return { info: await handle.stat(), data: await readAtMost(handle, path, LIMITS.manifestBytes) }
  } finally {
    await handle.close()
  }
}

/** A colon may be part of the name: an existing path is used unchanged. */
const split = async (flag: string): Promise<{ local: string; as: string }> => {
  const at = flag.lastIndexOf(':')
  if (at <= 0 || (await exists(flag))) return { local: flag, as: placeOf(flag) }
  return { local: flag.slice(0, at), as: flag.slice(at + 1) || placeOf(flag.slice(0, at)) }
}

/** A file below the working directory keeps its relative path; any other goes to the top of the workspace. */
const placeOf = (path: string): string => {
  const normal = normalize(path)
  return isAbsolute(normal) || normal.split(sep).includes('..') ? basename(normal) : normal
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )

const contentOf = (data: Buffer): { text: string } | { content: string } => {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data) }
  } catch {
    return { content: data.toString('base64') }
  }
}
