import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { Document, isMap, parseDocument } from 'yaml'
import { AppError } from '../jobs/errors.ts'

/** Changes the configuration file. Comments and the order of everything else stay. */
export const editConfigFile = (file: string, change: (document: Document) => void): void => {
  const parsed = parseDocument(existsSync(file) ? readFileSync(file, 'utf8') : '')
  const isSettings = parsed.contents === null || isMap(parsed.contents)
  const problem =
    parsed.errors[0]?.message.split('\n')[0] ?? (isSettings ? undefined : 'it is no list of settings')
  if (problem !== undefined)
    throw new AppError('invalid', `${file} cannot be changed: ${problem}`, { hint: `Correct ${file} first.` })
  const document: Document = parsed.contents === null ? new Document({}) : parsed
  change(document)
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  // Write to a temporary file and rename it, so that readers never see half a configuration.
  writeFileSync(`${file}.new`, document.toString({ lineWidth: 0 }), { mode: 0o600 })
  renameSync(`${file}.new`, file)
}
