import type { Context } from '../context.ts'

/** `deputy __complete WORD…`, for the scripts of `deputy completion`: one candidate a line, then its meaning. */
export const complete = async (context: Context, words: readonly string[]): Promise<number> => {
  const { candidates } = await import('../completion/candidates.ts')
  const { oneLine } = await import('../../jobs/visible-text.ts')
  const found = await candidates(context, words)
  return context.print(found.map(({ value, summary }) => `${value}\t${oneLine(summary, 60)}\n`).join(''))
}
