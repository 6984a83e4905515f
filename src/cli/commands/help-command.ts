import { AppError } from '../../jobs/errors.ts'
import { didYouMean } from '../../jobs/nearest.ts'
import { defineCommand } from '../command.ts'
import { commandHelp, overview } from '../help-text.ts'
import { COMMANDS } from './all-commands.ts'

export default defineCommand({
  name: 'help',
  summary: 'Show the help of a command',
  usage: '[COMMAND]',
  flags: {},
  async run(context, { args }) {
    const [name] = args
    if (name === undefined) return context.print(overview(context.colors))
    const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
    if (!entry)
      throw new AppError(
        'invalid',
        `Unknown command '${name}'${didYouMean(name, Object.keys(COMMANDS)) || '.'}`,
        {
          hint: 'deputy help',
        },
      )
    const { default: command } = await entry.load()
    return context.print(commandHelp(command, context.colors, context.out.columns))
  },
})
