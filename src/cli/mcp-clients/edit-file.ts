import { mkdir, rename, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { readRegularFile } from '../../files/regular-file.ts'
import { AppError } from '../../jobs/errors.ts'

const MAX_BYTES = 16 * 1024 * 1024

/** Sets `file[key][name]` and keeps the rest. Resolves with whether the file changed. */
export const addToJson = async (
  file: string,
  { key, name, entry }: { key: string; name: string; entry: unknown },
): Promise<boolean> => {
  const text = await readOrEmpty(file)
  const content = parseObject(file, text, { key, name, entry })
  const section = content[key] ?? {}
  if (typeof section !== 'object' || Array.isArray(section))
    throw notEditable(file, { [key]: { [name]: entry } })
  const servers = section as Record<string, unknown>
  if (JSON.stringify(servers[name]) === JSON.stringify(entry)) return false
  const indent = /^([ \t]+)"/m.exec(text)?.[1] ?? '  '
  await replace(
    file,
    `${JSON.stringify({ ...content, [key]: { ...servers, [name]: entry } }, null, indent)}\n`,
  )
  return true
}

/** Appends a section to a file that is not JSON, unless it is there. */
export const addText = async (
  file: string,
  { text, mark }: { text: string; mark: string },
): Promise<boolean> => {
  const before = await readOrEmpty(file)
  if (before.split('\n').some(line => line.trim() === mark)) return false
  const gap = before === '' ? '' : before.endsWith('\n') ? '\n' : '\n\n'
  await replace(file, `${before}${gap}${text}`)
  return true
}

const parseObject = (
  file: string,
  text: string,
  { key, name, entry }: { key: string; name: string; entry: unknown },
): Record<string, unknown> => {
  if (text.trim() === '') return {}
  try {
    const parsed: unknown = JSON.parse(text.replace(/^\ufeff/, ''))
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed))
      return parsed as Record<string, unknown>
  } catch {
    // Probably a file with comments, which rewriting would lose.
  }
  throw notEditable(file, { [key]: { [name]: entry } })
}

const notEditable = (file: string, wanted: unknown): AppError =>
  new AppError('conflict', `${file} is not plain JSON and was not changed.`, {
    hint: `Add this to it by hand:\n${JSON.stringify(wanted, null, 2)}`,
  })

const readOrEmpty = (file: string): Promise<string> =>
  readRegularFile(file, { maxBytes: MAX_BYTES, follow: true }).then(
    String,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return ''
      throw new AppError('denied', `${file} cannot be read: ${error.message}.`, { cause: error })
    },
  )

/** Replaces the file atomically and keeps its mode: it may hold other servers' tokens. */
const replace = async (file: string, text: string): Promise<void> => {
  await mkdir(dirname(file), { recursive: true })
  const mode = await stat(file).then(
    info => info.mode & 0o777,
    () => 0o600,
  )
  const temporary = `${file}.deputy-${process.pid}`
  await writeFile(temporary, text, { mode, flag: 'wx' })
  await rename(temporary, file)
}
