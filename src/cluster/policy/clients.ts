import type { Builtin } from './commands.ts'
import { ESCAPE, guessScript } from './guess.ts'
import { readCode } from './languages.ts'
import { UNKNOWN } from './text.ts'

const MAX_LINES = 256

/** Editors, debuggers and database clients: a line of what they read may go to a shell, a call of their own as well. */
const client: Builtin = (interpreter, args, scope, stdin) => {
  for (const line of stdin.split('\n').slice(0, MAX_LINES))
    if (ESCAPE.test(line)) guessScript(interpreter, line, scope)
  for (const arg of args) readCode(interpreter, arg, scope)
  return UNKNOWN
}

const CLIENT =
  /^(?:n?vim?|ex|ed|view|emacs\w*|nano|lldb|psql|mysql|mariadb|sqlite3?|ftp|sftp|lftp|tclsh|expect)$/

export const clientOf = (name: string): Builtin | undefined => (CLIENT.test(name) ? client : undefined)
