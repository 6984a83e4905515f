/** A part of what an agent said and did. */
export type Turn =
  | { readonly kind: 'text'; readonly text: string }
  | {
      readonly kind: 'call'
      readonly call: string
      readonly result: string | undefined
      readonly failed: boolean
    }

const CALL = '→ '
const RESULT = '← '
const FAILURE = '✗ '

/** Reads the log of a `claude` job: the daemon marks tool calls and their results at the beginning of a line. */
export const parseConversation = (log: string): Turn[] => {
  const turns: Turn[] = []
  const waiting: number[] = []
  let text: string[] = []
  const flush = (): void => {
    const said = text.join('\n').trim()
    text = []
    if (said !== '') turns.push({ kind: 'text', text: said })
  }
  for (const line of log.split('\n')) {
    if (line.startsWith(CALL)) {
      flush()
      waiting.push(turns.length)
      turns.push({ kind: 'call', call: line.slice(CALL.length), result: undefined, failed: false })
    } else if (line.startsWith(RESULT) || line.startsWith(FAILURE)) {
      // Calls of one turn are answered in their order.
      const index = waiting.shift()
      const turn = index === undefined ? undefined : turns[index]
      if (index === undefined || turn?.kind !== 'call') text.push(line)
      else turns[index] = { ...turn, result: line.slice(RESULT.length), failed: line.startsWith(FAILURE) }
    } else text.push(line)
  }
  flush()
  return turns
}
