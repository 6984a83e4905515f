import { AppError, toAppError } from '../jobs/errors.ts'
import { visible } from '../jobs/visible-text.ts'
import type { Context } from './context.ts'
import { lineWidth, wrap } from './terminal/wrap.ts'
import { PipeClosed } from './terminal/writer.ts'

/** What a shell reports for a program that wrote into a closed pipe. */
const SIGPIPE_STATUS = 141

/** Says what went wrong on stderr and gives the exit status: 2 for the operator's errors, 1 for defects. */
export const reportError = (context: Pick<Context, 'env' | 'err' | 'errColors'>, thrown: unknown): number => {
  if (thrown instanceof PipeClosed) return SIGPIPE_STATUS
  const error = toAppError(thrown)
  const { red, dim } = context.errColors
  // Commands in a message stay on one line when they are piped.
  const width = lineWidth(context.err) - HINT_WIDTH
  const shown = (text: string): string => wrap(multiline(text), width)
  const lines = [`${red('error:')} ${shown(error.message)}`]
  if (error.hint !== undefined) lines.push(`${dim('hint:')} ${shown(error.hint)}`)
  if (!(thrown instanceof AppError) && thrown instanceof Error && context.env.DEPUTY_DEBUG)
    lines.push(dim(thrown.stack ?? ''))
  // Write directly: the process exits next, and nothing waits for the writer.
  process.stderr.write(`${lines.join('\n')}\n`)
  return error.exitStatus
}

const HINT_WIDTH = 'error: '.length

const multiline = (text: string): string => text.split('\n').map(visible).join('\n')
