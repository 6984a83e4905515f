import { AppError, toAppError } from '../jobs/errors.ts'
import type { Context } from './context.ts'
import { visible } from './terminal/visible.ts'
import { PipeClosed } from './terminal/writer.ts'

/** What a shell reports for a program that wrote into a closed pipe. */
const SIGPIPE_STATUS = 141

/** Says what went wrong on stderr and gives the exit status: 2 for the operator's errors, 1 for defects. */
export const reportError = (context: Pick<Context, 'env' | 'errColors'>, thrown: unknown): number => {
  if (thrown instanceof PipeClosed) return SIGPIPE_STATUS
  const error = toAppError(thrown)
  const { red, dim } = context.errColors
  const lines = [`${red('error:')} ${multiline(error.message)}`]
  if (error.hint !== undefined) lines.push(`${dim('hint:')} ${multiline(error.hint)}`)
  if (!(thrown instanceof AppError) && thrown instanceof Error && context.env.DEPUTY_DEBUG)
    lines.push(dim(thrown.stack ?? ''))
  // Write directly: the process exits next, and nothing waits for the writer.
  process.stderr.write(`${lines.join('\n')}\n`)
  return error.exitStatus
}

const multiline = (text: string): string => text.split('\n').map(visible).join('\n')
