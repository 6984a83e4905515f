import { type JSONPath, type ParseError, parse } from 'jsonc-parser'
import { AppError } from '../../jobs/errors.ts'
import { isRecord, valueAt } from '../../jobs/records.ts'
import type { Edit } from './edit-file.ts'
import { removeProperty, setProperty } from './json-edit.ts'

export interface JsonServer {
  readonly file: string
  readonly key: string
  readonly name: string
}

/** Sets a server in a JSON file. Comments, order and formatting of everything else stay. */
export const setJsonServer = (text: string, server: JsonServer, entry: object): Edit => {
  const content = parseSettings(text, server, entry)
  const path = pathOf(content, server)
  const known = valueAt(content, path)
  if (JSON.stringify(known) === JSON.stringify(entry)) return { change: 'unchanged', text }
  // A new file gets a new line at its end, as editors write it.
  const base = text.trim() === '' ? '{}\n' : text
  return { change: known === undefined ? 'added' : 'updated', text: setProperty(base, path, entry) }
}

/** Removes a server, and what was only there for it: an empty list of servers, and then an empty file. */
export const removeJsonServer = (text: string, server: JsonServer): Edit => {
  const content = parseSettings(text, server, {})
  const path = pathOf(content, server)
  if (valueAt(content, path) === undefined) return { change: 'absent', text }
  const siblings = Object.keys(valueAt(content, path.slice(0, -1)) ?? {})
  const after = removeProperty(text, siblings.length > 1 ? path : [server.key])
  return { change: 'removed', text: /^\s*\{\s*\}\s*$/.test(after) ? undefined : after }
}

/** Some versions of opencode list servers one level deeper. */
const pathOf = (content: object, { key, name }: JsonServer): JSONPath => {
  const nested = valueAt(content, [key, 'servers'])
  return key === 'mcp' && nested !== undefined ? [key, 'servers', name] : [key, name]
}

const parseSettings = (text: string, { file, key, name }: JsonServer, entry: object): object => {
  if (text.trim() === '') return {}
  const errors: ParseError[] = []
  const content: unknown = parse(text.replace(/^\ufeff/, ' '), errors, { allowTrailingComma: true })
  if (errors.length === 0 && isRecord(content) && isRecord(valueAt(content, [key]) ?? {})) return content
  throw new AppError('conflict', `${file} is not a JSON object with '${key}' and was not changed.`, {
    hint: `Add this to it by hand:\n${JSON.stringify({ [key]: { [name]: entry } }, null, 2)}`,
  })
}
