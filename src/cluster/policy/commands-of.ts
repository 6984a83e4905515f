import { interpret } from './interpret.ts'
import { Refused } from './interpreter.ts'
import { memo } from './memo.ts'
import { createScope } from './scope.ts'

const MAX_COMMANDS = 4096

/**
 * The simple commands of a script with the words they may run with, wrappers on and off, for those who ask what a
 * script is about and not whether it may run. Of one that is too tangled, what was read until then.
 */
export const commandsOf: (source: string) => readonly (readonly string[])[] = memo(source => {
  const commands: (readonly string[])[] = []
  const scope = createScope({ root: false, env: {}, cwd: undefined })
  try {
    interpret(source, scope, {
      command: argv => {
        if (commands.length < MAX_COMMANDS) commands.push(argv)
        return undefined
      },
      enabled: () => false,
    })
  } catch (error) {
    if (!(error instanceof Refused)) throw error
  }
  return commands
})
