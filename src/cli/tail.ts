import type { Client } from '../client/daemon-client.ts'
import type { OutputPage, OutputPiece } from '../engine/deputy.ts'

const LINE_BYTES = 200
const MAX_BYTES = 1024 * 1024
const NEWLINE = 10

/** The last lines of the output so far; fewer when lines are long. */
export const lastLines = async (
  client: Client,
  id: string,
  lines: number,
  signal: AbortSignal,
): Promise<OutputPage> => {
  for (let bytes = Math.max(4096, lines * LINE_BYTES); ; bytes *= 4) {
    const asked = Math.min(bytes, MAX_BYTES)
    const page = await client.output(id, { cursor: -asked, maxBytes: asked, signal })
    const pieces = keepLines(page.pieces, lines)
    const first = page.pieces[0]
    if (pieces || asked === MAX_BYTES || first === undefined || first.offset === 0)
      return { ...page, pieces: pieces ?? page.pieces }
  }
}

/** Counts lines from the end over the pieces; undefined when there are not enough of them. */
const keepLines = (pieces: readonly OutputPiece[], lines: number): OutputPiece[] | undefined => {
  let left = lines
  let isLastByte = true
  for (let index = pieces.length - 1; index >= 0; index--) {
    const piece = pieces[index]!
    if ('skipped' in piece) continue
    for (let at = piece.data.length - 1; at >= 0; at--) {
      if (piece.data[at] === NEWLINE && !isLastByte && --left === 0)
        return [
          { ...piece, offset: piece.offset + at + 1, data: piece.data.subarray(at + 1) },
          ...pieces.slice(index + 1),
        ]
      isLastByte = false
    }
  }
  return undefined
}
