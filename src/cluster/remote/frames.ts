export type Frame =
  | { kind: 'started'; fresh: boolean }
  | { kind: 'output'; stream: 'stdout' | 'stderr'; data: Buffer }
  | { kind: 'ended'; code: number; how: 'exit' | 'timeout' | 'cancel'; from: number; to: number }
  | { kind: 'lost'; reason: string }
  | { kind: 'not-started'; reason: string; fault: boolean }
  | { kind: 'dropped'; bytes: number }
  | { kind: 'alive' }
  | { kind: 'superseded' }
  | { kind: 'line'; text: string }

const MAX_LINE = 65_536

/**
 * Cuts the stream of a follower into frames. What a login shell prints before the mark is left out; the mark is
 * random, so no output can pretend to be a frame.
 */
export const createFrameReader = (
  mark: string,
  onFrame: (frame: Frame) => void,
): ((chunk: Buffer) => void) => {
  let rest: Buffer = Buffer.alloc(0)
  let marked = false
  let body: { stream: 'stdout' | 'stderr'; left: number } | undefined

  return chunk => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (;;) {
      if (body) {
        if (rest.length === 0) return
        const data = rest.subarray(0, body.left)
        rest = rest.subarray(data.length)
        body.left -= data.length
        onFrame({ kind: 'output', stream: body.stream, data })
        if (body.left === 0) body = undefined
        continue
      }
      const newline = rest.indexOf(10)
      if (newline < 0) {
        if (rest.length > MAX_LINE) rest = rest.subarray(-MAX_LINE)
        return
      }
      const line = rest.subarray(0, newline).toString('utf8')
      rest = rest.subarray(newline + 1)
      if (!marked) {
        marked = line.endsWith(mark)
        continue
      }
      const frame = parseLine(line)
      if ('left' in frame) body = frame.left > 0 ? frame : undefined
      else onFrame(frame)
    }
  }
}

const parseLine = (line: string): Frame | { stream: 'stdout' | 'stderr'; left: number } => {
  const [kind, ...words] = line.split(' ')
  const text = words.join(' ')
  switch (kind) {
    case 'o':
      return { stream: 'stdout', left: count(words[0]) }
    case 'e':
      return { stream: 'stderr', left: count(words[0]) }
    case 's':
      return { kind: 'started', fresh: words[0] === '1' }
    case 'd':
      return { kind: 'dropped', bytes: count(words[0]) }
    case 'h':
      return { kind: 'alive' }
    case 'q':
      return { kind: 'superseded' }
    case 'l':
      return { kind: 'lost', reason: text }
    case 'n':
    case 'f':
      return { kind: 'not-started', reason: text, fault: kind === 'f' }
    case 'x': {
      const how = words[1] === 'timeout' || words[1] === 'cancel' ? words[1] : 'exit'
      return { kind: 'ended', code: count(words[0]), how, from: count(words[2]), to: count(words[3]) }
    }
    default:
      return { kind: 'line', text: line }
  }
}

const count = (word: string | undefined): number => {
  const value = Number(word)
  return Number.isSafeInteger(value) && value >= 0 ? value : 0
}
