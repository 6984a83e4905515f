import { type FlagSpec, GLOBAL_FLAGS } from './args/spec.ts'
import type { NamedCommand } from './command.ts'
import { COMMANDS } from './commands/all-commands.ts'
import type { Colors } from './terminal/colors.ts'
import { wrap } from './terminal/wrap.ts'

const GROUPS: readonly (readonly [string, readonly string[]])[] = [
  ['Delegate', ['run', 'submit', 'exec', 'shell']],
  ['Your machines', ['nodes', 'cluster', 'machines', 'proxmox']],
  ['Watch', ['status', 'logs', 'events', 'list', 'cancel']],
  ['Bring back', ['result', 'artifacts', 'patch', 'delete']],
  [
    'Set up',
    ['mcp', 'doctor', 'config', 'secrets', 'daemon', 'serve', 'completion', 'demo', 'version', 'help'],
  ],
]

export const overview = ({ bold, dim, cyan }: Colors): string => {
  const rest = Object.keys(COMMANDS).filter(name => !GROUPS.some(([, names]) => names.includes(name)))
  const groups = rest.length > 0 ? [...GROUPS, ['More', rest] as const] : GROUPS
  const sections = groups.map(([title, names]) => {
    const lines = names.map(name => `  ${cyan(name.padEnd(12))}${COMMANDS[name]?.summary ?? ''}`)
    return `${bold(title)}\n${lines.join('\n')}`
  })
  return `${bold('deputy')} hands tasks to isolated machines and brings back what they did.

${dim('$')} deputy run -- make test
${dim('$')} claude mcp add deputy -- deputy mcp

${sections.join('\n\n')}

Run deputy COMMAND --help for details.
`
}

/** `columns`: the width of the terminal. */
export const commandHelp = (command: NamedCommand, { bold, dim, cyan }: Colors, columns: number): string => {
  const line = Math.min(columns, LINE)
  const parts = [
    `${command.summary}.`,
    `${bold('Usage')}\n${wrap(`  deputy ${command.name} ${command.usage}`.trimEnd(), line, 4)}`,
  ]
  if (command.description) parts.push(wrap(command.description.replace(/\s+/g, ' '), line))
  const all: [string, FlagSpec][] = Object.entries({ ...command.flags, ...GLOBAL_FLAGS })
  const width = Math.max(...all.map(([name, spec]) => flagLabel(name, spec).length)) + 2
  const lines = all.map(([name, spec]) => {
    const summary = wrap(spec.summary, line - width - 2).replaceAll('\n', `\n${' '.repeat(width + 2)}`)
    return `  ${cyan(flagLabel(name, spec).padEnd(width))}${summary}`
  })
  parts.push(`${bold('Flags')}\n${lines.join('\n')}`)
  if (command.examples) {
    const examples = command.examples.map(([line, what]) => `  ${dim(`# ${what}`)}\n  ${line}`)
    parts.push(`${bold('Examples')}\n${examples.join('\n')}`)
  }
  return `${parts.join('\n\n')}\n`
}

/** Widest line of help text. */
const LINE = 100

/** @public The generated reference lists flags in the same form. */
export const flagLabel = (name: string, spec: FlagSpec): string => {
  const short = spec.short === undefined ? '    ' : `-${spec.short}, `
  const value = spec.type === 'boolean' ? '' : ` ${spec.value ?? spec.choices?.join('|') ?? 'VALUE'}`
  return `${short}--${name}${value}`
}
