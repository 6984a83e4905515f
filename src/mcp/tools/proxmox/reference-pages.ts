import type { Row, Tool, Toolset } from './table/define-row.ts'

/** Generates the pages of `docs/reference` and `skills` from the table. The caller formats them. */
export const toolsetPage = (toolset: Toolset, note: string): string =>
  [`# ${toolset.name}`, note, toolset.about, ...toolset.tools.map(toolSection)].join('\n\n').concat('\n')

export const overviewPage = (
  toolsets: readonly Toolset[],
  note: string,
  link: (name: string) => string,
): string => {
  const rows = toolsets.map(({ name, about, tools }) => [
    `[${name}](${link(name)})`,
    String(tools.length),
    about,
  ])
  return [
    '# Proxmox tools',
    note,
    `${toolsets.reduce((sum, { tools }) => sum + tools.length, 0)} tools in ${toolsets.length} toolsets, chosen with \`--toolsets\`; \`proxmox-all\` is all but the aliases.`,
    table(['toolset', 'tools', 'what for'], rows),
  ]
    .join('\n\n')
    .concat('\n')
}

const toolSection = (tool: Tool): string => {
  const rows = Object.entries(tool.actions).map(([action, row]) => [
    ...(action === '' ? [] : [`\`${action}\``]),
    row.worst === row.tier ? row.tier : `${row.tier}, at worst ${row.worst}`,
    `\`${row.method} ${row.path}\``,
    names(row.required),
    names(row.optional),
    answerOf(row),
  ])
  const heads = [...('' in tool.actions ? [] : ['action']), 'tier', 'operation', 'needs', 'takes', 'answers']
  const notes = Object.entries(tool.actions).flatMap(([action, { note }]) =>
    note ? [`- ${action ? `\`${action}\`: ` : ''}${note}`] : [],
  )
  const meanings = Object.entries(tool.params).flatMap(([name, { about, values }]) => {
    const meaning = [about, values?.map(value => `\`${value}\``).join(', ')].filter(Boolean).join(': ')
    return meaning ? [`- \`${name}\`: ${meaning}`] : []
  })
  return [`## ${tool.name}`, tool.about, table(heads, rows), notes.join('\n'), meanings.join('\n')]
    .filter(Boolean)
    .join('\n\n')
}

const answerOf = ({ format }: Row): string => {
  switch (format.kind) {
    case 'rows':
      return format.fields.length > 0 ? format.fields.map(field => field.name).join(', ') : 'rows'
    case 'record':
      return format.fields.length > 0 ? format.fields.map(field => field.name).join(', ') : 'one object'
    case 'series':
      return 'newest points of a series'
    case 'task':
      return 'the task and its outcome'
    default:
      return format.kind
  }
}

const names = (list: readonly string[]) => list.map(name => `\`${name}\``).join(', ')

const table = (heads: readonly string[], rows: readonly (readonly string[])[]): string => {
  const line = (cells: readonly string[]) =>
    `| ${cells.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n')
}
