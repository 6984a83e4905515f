import { createAnsiStyle, type Span } from './ansi.ts'

export interface Line {
  /** From 1; lines that were dropped keep their numbers. */
  readonly number: number
  readonly stream: Stream
  /** Milliseconds since 1970; 0 for a line that is not of the job. */
  readonly at: number
  readonly spans: Span[]
}

export type Stream = 'stdout' | 'stderr' | 'gap'

export const BLOCK_LINES = 100
const MAX_LINES = 20_000
const DROPPED_LINES = 2_000

/** Control sequences of a terminal, whole: `ESC [ … m`, titles, cursor moves. Group 1 holds the colours. */
const SEQUENCE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for.
  /\x1b(?:\[([\d;:]*)m|\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: the beginning of a sequence whose end is still to come.
const UNFINISHED = /\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]{0,4096}\x1b?)?$/

/**
 * Output as lines: with colours, with `\r` beginning the line anew, and with the streams apart. It holds the last
 * 20,000 lines; a browser shows more only slowly.
 */
export const createLineBuffer = () => {
  const lines: Line[] = []
  let dropped = 0
  let isOpen = false
  let isReturned = false
  const parsers = { stdout: createAnsiStyle(), stderr: createAnsiStyle(), gap: createAnsiStyle() }
  const held = { stdout: '', stderr: '', gap: '' }

  const current = (stream: Stream, at: number): Line => {
    const last = lines.at(-1)
    if (isOpen && last?.stream === stream) {
      if (isReturned) last.spans.length = 0
      isReturned = false
      return last
    }
    isReturned = false
    isOpen = true
    const line = { number: dropped + lines.length + 1, stream, at, spans: [] }
    lines.push(line)
    return line
  }
  const write = (text: string, stream: Stream, at: number): void => {
    const { spans } = current(stream, at)
    const { style } = parsers[stream]
    const last = spans.at(-1)
    if (last?.style === style) spans[spans.length - 1] = { style, text: last.text + text }
    else spans.push({ style, text })
  }
  const endLine = (stream: Stream, at: number): void => {
    isReturned = false
    current(stream, at)
    isOpen = false
  }
  const dropOldest = (): void => {
    if (lines.length <= MAX_LINES) return
    lines.splice(0, DROPPED_LINES)
    dropped += DROPPED_LINES
  }

  return {
    lines,
    get dropped(): number {
      return dropped
    },
    /** Gives the number of the first line that changed. */
    push: (piece: string, stream: Stream, at: number): number => {
      const changed = Math.max(1, dropped + lines.length)
      const joined = held[stream] + piece
      const cut = UNFINISHED.exec(joined)?.index ?? joined.length
      held[stream] = joined.slice(cut)
      const text = joined.slice(0, cut)
      for (let from = 0; from < text.length; ) {
        const stop = nextControl(text, from)
        if (stop > from) write(text.slice(from, stop), stream, at)
        if (stop === text.length) break
        from = stop + 1
        if (text[stop] === '\n') endLine(stream, at)
        else if (text[stop] === '\r') isReturned = true
        else {
          SEQUENCE.lastIndex = stop
          const match = SEQUENCE.exec(text)
          if (match?.[1] !== undefined) parsers[stream].apply(match[1])
          if (match !== null) from = SEQUENCE.lastIndex
        }
      }
      dropOldest()
      return changed
    },
  }
}

export const textOf = ({ spans }: Line): string => spans.map(span => span.text).join('')

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for.
const CONTROL = /[\x00-\x08\x0a-\x1f\x7f]/g

const nextControl = (text: string, from: number): number => {
  CONTROL.lastIndex = from
  return CONTROL.exec(text)?.index ?? text.length
}
