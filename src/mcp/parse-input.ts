import type { z } from 'zod'
import { AppError } from '../jobs/errors.ts'
import { didYouMean } from '../jobs/nearest.ts'
import { valueAt } from '../jobs/records.ts'

/** Validates the arguments of a tool. `tools/call` may omit them altogether. */
export const parseInput = <Input extends z.ZodObject>(
  schema: Input,
  args: unknown,
  tool: string,
): z.output<Input> => {
  const parsed = schema.safeParse(args ?? {})
  if (parsed.success) return parsed.data
  const known = Object.keys(schema.shape)
  const problems = parsed.error.issues.slice(0, 8).flatMap(issue => explain(issue, known, args))
  const listed = problems.join('; ')
  throw new AppError(
    'invalid',
    `Invalid arguments for ${tool}: ${listed}${listed.endsWith('?') ? '' : '.'}`,
    {
      hint: known.length > 0 ? `Arguments of ${tool}: ${known.join(', ')}.` : `${tool} takes no arguments.`,
      details: { problems },
    },
  )
}

const explain = (issue: z.core.$ZodIssue, known: readonly string[], args: unknown): string[] => {
  const at = issue.path.map(String).join('.')
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map(
      key => `unknown argument '${at ? `${at}.` : ''}${key}'${at ? '' : didYouMean(key, known)}`,
    )
  const value = valueAt(args, issue.path)
  if (value === undefined && at !== '') return [`'${at}' is required`]
  const shown = JSON.stringify(value) ?? 'nothing'
  const message = issue.message.replace(/^Invalid input: /, '').replace(/^\w/, first => first.toLowerCase())
  return [
    `${at ? `'${at}'` : 'the arguments'}: ${message} (got ${shown.length > 60 ? `${shown.slice(0, 57)}…` : shown})`,
  ]
}
