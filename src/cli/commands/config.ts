import { isListening } from '../../client/daemon-info.ts'
import { AppError } from '../../jobs/errors.ts'
import { didYouMean } from '../../jobs/nearest.ts'
import { usage } from '../args/parse.ts'
import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import type { Context } from '../context.ts'
import { type Column, table } from '../terminal/table.ts'

interface Setting {
  readonly path: string
  readonly value: unknown
  readonly origin: string
}

export default defineCommand({
  name: 'config',
  summary: 'Show the configuration and where each value comes from',
  usage: 'explain [SETTING]',
  description: `Environment wins over the file, the file over the defaults. A running daemon is asked what it uses; without
one, what it would use is worked out here.`,
  examples: [['deputy config explain defaults', 'one section']],
  flags: { json: JSON_FLAG },
  words: ['explain', 'path'],
  async run(context, { flags, args }) {
    const [verb = 'explain', wanted] = args
    const file = context.home.configFile
    if (verb === 'path') return flags.json ? context.printJson({ path: file }) : context.print(`${file}\n`)
    if (verb !== 'explain')
      throw usage(
        `Unknown subcommand 'config ${verb}'${didYouMean(verb, ['explain', 'path']) || '.'}`,
        'config',
      )
    const all = await settings(context)
    const some = all.filter(
      setting => wanted === undefined || setting.path === wanted || setting.path.startsWith(`${wanted}.`),
    )
    if (some.length === 0) throw unknown(wanted ?? '', all)
    if (flags.json) return context.printJson(some)
    if (context.out.isTTY) await context.err.write(context.errColors.dim(`# ${file}\n`))
    return context.print(table(some, COLUMNS, { width: context.out.columns, heading: context.colors.dim }))
  },
})

const settings = async (context: Context): Promise<readonly Setting[]> => {
  if (await isListening(context.home.socket)) {
    const answer = await (await context.plainClient()).config()
    if (Array.isArray(answer)) return answer
    if (typeof answer === 'object' && answer !== null && 'settings' in answer)
      return answer.settings as Setting[]
  }
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
  { title: 'VALUE', value: setting => JSON.stringify(setting.value) ?? '' },
  { title: 'FROM', value: setting => setting.origin },
]
