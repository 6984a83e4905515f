import { isListening } from '../../client/daemon-info.ts'
import { AppError } from '../../jobs/errors.ts'
import { didYouMean } from '../../jobs/nearest.ts'
import { unknownSubcommand, usage } from '../args/parse.ts'
import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import type { Context } from '../context.ts'
import { type Column, table } from '../terminal/table.ts'
import { lineWidth } from '../terminal/wrap.ts'

interface Setting {
  readonly path: string
  readonly value: unknown
  readonly origin: string
}

const VERBS = ['explain', 'set', 'edit', 'path']

export default defineCommand({
  usage: 'explain [SETTING] | set SETTING VALUE | edit | path',
  description: `The environment overrides the file, and the file overrides the defaults. explain shows what a running daemon
uses; without one, what it would use. set and edit change the file; set keeps comments and refuses an invalid value.`,
  examples: [
    ['deputy config explain defaults', 'one section'],
    ['deputy config set defaults.timeout 600', 'change a value'],
  ],
  flags: { json: JSON_FLAG },
  words: VERBS,
  suggest: async (context, first) =>
    first === 'explain' || first === 'set' ? (await settings(context)).map(({ path }) => path) : [],
  async run(context, { flags, args }) {
    const [verb = 'explain', wanted] = args
    const file = context.home.configFile
    if (verb === 'path') return flags.json ? context.printJson({ path: file }) : context.print(`${file}\n`)
    if (verb === 'edit') {
      const { editSettings } = await import('../change-config.ts')
      return editSettings(context)
    }
    if (verb === 'set') {
      const value = args[2]
      if (wanted === undefined || value === undefined)
        throw usage('Usage: deputy config set SETTING VALUE', 'config')
      const { setSetting } = await import('../change-config.ts')
      return setSetting(context, wanted, value)
    }
    if (verb !== 'explain') throw unknownSubcommand('config', verb, VERBS)
    const all = await settings(context)
    const some = all.filter(
      setting => wanted === undefined || setting.path === wanted || setting.path.startsWith(`${wanted}.`),
    )
    if (some.length === 0) throw unknown(wanted ?? '', all)
    if (flags.json) return context.printJson(some)
    if (context.out.isTTY) await context.err.write(context.errColors.dim(`# ${file}\n`))
    // A single setting is asked for because of its value, which is shown whole.
    const width = some.length === 1 ? Number.POSITIVE_INFINITY : lineWidth(context.out)
    return context.print(table(some, COLUMNS, { width, heading: context.colors.dim }))
  },
})

const settings = async (context: Context): Promise<readonly Setting[]> => {
  if (await isListening(context.home.socket)) return (await context.plainClient()).config()
  const { loadConfig } = await import('../../config/load.ts')
  return loadConfig(context.home, context.env).settings
}

const unknown = (wanted: string, all: readonly Setting[]): AppError => {
  const names = [...new Set(all.flatMap(({ path }) => [path, path.split('.')[0]!]))]
  return new AppError('not_found', `Unknown setting '${wanted}'${didYouMean(wanted, names) || '.'}`, {
    hint: 'deputy config explain',
  })
}

const COLUMNS: Column<Setting>[] = [
  { title: 'SETTING', value: setting => setting.path },
  { title: 'VALUE', value: setting => JSON.stringify(setting.value) ?? '', rest: true },
  { title: 'FROM', value: setting => setting.origin },
]
