import { loadConfig } from '../../config/load.ts'
import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import type { Column } from '../terminal/table.ts'

interface SecretView {
  readonly name: string
  /** `env:NAME`, `file:PATH` or the program; never the value. */
  readonly from: string
  /** Whether its environment variable is set in this shell; null for a file or a program. */
  readonly available: boolean | null
  readonly rules: string
}

export default defineCommand({
  usage: '[flags]',
  description: `Shows where each secret comes from and which jobs may use it, never its value. Add one with deputy config set
secrets.NAME env:NAME.`,
  examples: [['deputy config set secrets.NPM_TOKEN file:/home/me/.npm-token', 'add a secret']],
  flags: { json: JSON_FLAG },
  async run(context, { flags }) {
    const { config } = loadConfig(context.home, context.env)
    const secrets = Object.entries(config.secrets).map(([name, rule]): SecretView => {
      const { from, ...rules } = typeof rule === 'object' && 'from' in rule ? rule : { from: rule }
      const source = typeof from === 'string' ? from : `cmd:${from.join(' ')}`
      const variable = /^env:(.+)/.exec(source)?.[1]
      return {
        name,
        from: source,
        available: variable === undefined ? null : Boolean(context.env[variable]),
        rules: Object.entries(rules)
          .map(([key, values]) => `${key}: ${(values ?? []).join(', ')}`)
          .join('; '),
      }
    })
    if (flags.json) return context.printJson({ secrets })
    return context.printTable(secrets, COLUMNS)
  },
})

const COLUMNS: Column<SecretView>[] = [
  { title: 'NAME', value: secret => secret.name },
  { title: 'SET HERE', value: ({ available }) => (available === null ? '–' : available ? 'yes' : 'no') },
  { title: 'FROM', value: secret => secret.from },
  { title: 'ONLY FOR', value: secret => secret.rules, rest: true },
]
