import type { CommandSpec } from '../../ports.ts'

/** What a later daemon must know of a command; it waits on the node, beside it. */
export interface Memo {
  readonly secrets: readonly string[]
  readonly format: CommandSpec['format']
  readonly isolation: readonly string[]
  readonly timeoutSeconds: number
  /** It began with a workspace. */
  readonly hasWorkspace?: boolean
}

export const writeMemo = (memo: Memo): string => JSON.stringify(memo)

export const readMemo = (text: string): Memo => {
  const fallback: Memo = { secrets: [], format: 'text', isolation: ['unknown'], timeoutSeconds: 0 }
  try {
    return text === '' ? fallback : { ...fallback, ...(JSON.parse(text) as Memo) }
  } catch {
    return fallback
  }
}
