import type { Writer } from './writer.ts'

/** Where lines break: at the edge of a terminal. Programs that read a pipe get whole lines. */
export const lineWidth = ({ isTTY, columns }: Pick<Writer, 'isTTY' | 'columns'>): number =>
  isTTY ? columns : Number.POSITIVE_INFINITY

/** Breaks text between words, each further line after `indent` spaces. A longer word stays whole. */
export const wrap = (text: string, width: number, indent = 0): string =>
  text
    .split('\n')
    .map(line => wrapLine(line, Math.max(20, width), ' '.repeat(indent)))
    .join('\n')

const wrapLine = (text: string, width: number, indent: string): string => {
  if (text.length <= width) return text
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last === undefined) lines.push(word)
    else if (last.length + 1 + word.length > width) lines.push(indent + word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines.join('\n')
}
