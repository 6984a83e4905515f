import { existsSync } from 'node:fs'
import { readRegularFile } from '../../files/regular-file.ts'
import { AppError } from '../../jobs/errors.ts'
import { LIMITS } from '../../jobs/limits.ts'
import { isRecord } from '../../jobs/records.ts'

export const isManifestFile = (word: string): boolean =>
  word === '-' || (/\.(json|ya?ml)$/i.test(word) && existsSync(word))

/** A manifest from a file or from stdin (`-`), JSON or YAML. */
export const readManifest = async (source: string): Promise<Record<string, unknown>> => {
  const text = source === '-' ? await readStdin() : await readText(source)
  const shown = source === '-' ? 'stdin' : source
  const parsed = await parse(text, shown)
  if (!isRecord(parsed))
    throw new AppError('invalid', `${shown} does not contain a manifest.`, {
      hint: 'The smallest manifest is {"task": "echo hello"}.',
    })
  return parsed
}

const readText = async (path: string): Promise<string> => {
  try {
    return (await readRegularFile(path, { maxBytes: LIMITS.manifestBytes, follow: true })).toString('utf8')
  } catch (error) {
    throw new AppError('invalid', `The manifest ${path} cannot be read: ${reason(error)}.`, { cause: error })
  }
}

const readStdin = async (): Promise<string> => {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of process.stdin) {
    size += (chunk as Buffer).length
    if (size > LIMITS.manifestBytes)
      throw new AppError('too_large', `The manifest on stdin is larger than ${LIMITS.manifestBytes} bytes.`, {
        hint: 'Send large inputs as a workspace: --workspace DIR',
      })
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks).toString('utf8')
}

const parse = async (text: string, shown: string): Promise<unknown> => {
  try {
    if (/^\s*\{/.test(text)) return JSON.parse(text)
  } catch {
    // YAML has braces too, and its errors name the line.
  }
  const yaml = await import('yaml')
  try {
    return yaml.parse(text)
  } catch (error) {
    throw new AppError('invalid', `${shown} is neither JSON nor YAML: ${reason(error)}`, { cause: error })
  }
}

const reason = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  if ('code' in error && error.code === 'ENOENT') return 'the file does not exist'
  return error.message.split('\n')[0] ?? ''
}
