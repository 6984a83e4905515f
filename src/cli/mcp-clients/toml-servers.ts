import { isRecord } from '../../jobs/records.ts'
import type { Edit } from './edit-file.ts'

/**
 * A table of a TOML file, such as `[mcp_servers.deputy]` with its subtables. Only whole tables are replaced, so the
 * rest of the file stays byte for byte.
 */
export const setTomlTable = (text: string, table: string, values: object): Edit => {
  const wanted = render(table, values)
  const found = findTable(text, table)
  if (found === undefined) {
    const gap = text === '' ? '' : text.endsWith('\n') ? '\n' : '\n\n'
    return { change: 'added', text: `${text}${gap}${wanted}` }
  }
  const { start, end } = found
  if (text.slice(start, end) === wanted) return { change: 'unchanged', text }
  return { change: 'updated', text: text.slice(0, start) + wanted + text.slice(end) }
}

export const removeTomlTable = (text: string, table: string): Edit => {
  const found = findTable(text, table)
  if (found === undefined) return { change: 'absent', text }
  // Also remove the empty line that separates it from what is before.
  const before = text.slice(0, found.start).replace(/\n\n$/, '\n')
  const after = before + text.slice(found.end)
  return { change: 'removed', text: after.trim() === '' ? undefined : after }
}

/** A JSON string or list of strings is the same in TOML. */
const render = (table: string, values: object): string => {
  const entries = Object.entries(values)
  const lines = entries.flatMap(([key, value]) =>
    isRecord(value) ? [] : [`${key} = ${JSON.stringify(value)}`],
  )
  const tables = entries.flatMap(([key, value]) =>
    isRecord(value) ? [`\n${render(`${table}.${key}`, value)}`.trimEnd()] : [],
  )
  return `${[`[${table}]`, ...lines, ...tables].join('\n')}\n`
}

/** Our table with its subtables, without the empty lines and comments that precede the next table. */
const findTable = (text: string, table: string): { start: number; end: number } | undefined => {
  const header = /^[ \t]*\[+([^\]\n]+)\]+.*$/gm
  let start: number | undefined
  for (let match = header.exec(text); match !== null; match = header.exec(text)) {
    const name = match[1]!.replace(/["'\s]/g, '')
    const isOurs = name === table || name.startsWith(`${table}.`)
    if (isOurs) start ??= match.index
    else if (start !== undefined) return { start, end: start + lastLine(text.slice(start, match.index)) }
  }
  return start === undefined ? undefined : { start, end: start + lastLine(text.slice(start)) }
}

const lastLine = (section: string): number => {
  const lines = section.split('\n')
  while (lines.length > 1 && /^\s*(#.*)?$/.test(lines.at(-1)!)) lines.pop()
  return lines.join('\n').length + (section.length > lines.join('\n').length ? 1 : 0)
}
