import { AppError } from '../jobs/errors.ts'
import { didYouMean } from '../jobs/nearest.ts'
import { ownProperty } from '../jobs/own-property.ts'
import { VERSION } from '../version.ts'
import { parseArgs, usage } from './args/parse.ts'
import { GLOBAL_FLAGS } from './args/spec.ts'
import { COMMANDS, loadCommand } from './commands/all-commands.ts'
import { createContext } from './context.ts'
import { reportError } from './report-error.ts'

/** Runs one invocation and sets the exit status. */
export const runCli = async (argv: readonly string[]): Promise<void> => {
  const context = createContext({ env: process.env, argv })
  try {
    process.exitCode = await dispatch(context, argv)
  } catch (error) {
    process.exitCode = reportError(context, error)
  } finally {
    context.close()
  }
}

type Context = ReturnType<typeof createContext>

const dispatch = async (context: Context, argv: readonly string[]): Promise<number> => {
  const [name, ...rest] = argv
  if (name === '--version' || name === '-V' || name === '-v') return context.print(`${VERSION}\n`)
  if (name === undefined || name === '--help' || name === '-h') {
    const { overview } = await import('./help-text.ts')
    return context.print(overview(context.colors))
  }
  if (name === '__complete') {
    const { complete } = await import('./commands/complete-command.ts')
    return complete(context, rest)
  }
  const command = await loadCommand(name)
  if (!command) throw unknownCommand(name)
  const parsed = parseArgs({
    flags: { ...command.flags, ...GLOBAL_FLAGS },
    argv: rest,
    command: name,
    ...(command.stopAt && { stopAt: command.stopAt }),
  })
  if (parsed.flags.help) {
    const { commandHelp } = await import('./help-text.ts')
    return context.print(commandHelp(command, context.colors, context.out.columns))
  }
  const [extra] = [...parsed.args, ...(parsed.rest ?? [])]
  if (extra !== undefined && command.usage.replace('[flags]', '').trim() === '')
    throw usage(`deputy ${name} takes no argument, but got '${extra}'.`, name)
  return command.run(context, parsed as never)
}

/** Names of the same commands in other programs. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  jobs: 'list',
  ls: 'list',
  ps: 'list',
  kill: 'cancel',
  stop: 'cancel',
  rm: 'delete',
  output: 'logs',
  node: 'nodes',
}

const unknownCommand = (name: string): AppError => {
  const what = name.startsWith('-') ? 'flag' : 'command'
  const guess = didYouMean(ownProperty(OTHER_NAMES, name) ?? name, Object.keys(COMMANDS))
  return new AppError('invalid', `Unknown ${what} '${name}'${guess || '.'}`, { hint: 'deputy help' })
}
