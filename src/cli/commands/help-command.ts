import { AppError } from '../../jobs/errors.ts'
import { didYouMean } from '../../jobs/nearest.ts'
import { defineCommand } from '../command.ts'
import { commandHelp, overview } from '../help-text.ts'
import { COMMANDS, loadCommand } from './all-commands.ts'

export default defineCommand({
  usage: '[COMMAND]',
  flags: {},
  async run(context, { args }) {
    const [name] = args
    if (name === undefined) return context.print(overview(context.colors))
    const command = await loadCommand(name)
    if (!command)
      throw new AppError(
        'invalid',
        `Unknown command '${name}'${didYouMean(name, Object.keys(COMMANDS)) || '.'}`,
        { hint: 'deputy help' },
      )
    return context.print(commandHelp(command, context.colors, context.out.columns))
  },
})
