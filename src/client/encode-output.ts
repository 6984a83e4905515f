import { Buffer } from 'node:buffer'
import type { OutputPage, OutputPiece } from '../engine/deputy.ts'
import type { WirePage, WirePiece } from './wire-output.ts'

export const encodePage = (page: OutputPage): WirePage => {
  const pieces = joinPieces(page.pieces)
  const held = page.done ? 0 : splitTail(pieces)
  const last = pieces.length - 1
  return {
    job_id: page.job_id,
    status: page.status,
    pieces: pieces.map((piece, index) => encodePiece(piece, index === last ? held : 0)),
    next_cursor: page.next_cursor - held,
    done: page.done,
  }
}

type DataPiece = Extract<OutputPiece, { data: Uint8Array }>

/** Joins adjacent pieces of one stream: fewer objects, fewer split characters. */
const joinPieces = (pieces: readonly OutputPiece[]): OutputPiece[] => {
  const joined: OutputPiece[] = []
  let run: DataPiece[] = []
  const flush = () => {
    const [first] = run
    if (first === undefined) return
    joined.push(run.length === 1 ? first : { ...first, data: Buffer.concat(run.map(piece => piece.data)) })
    run = []
  }
  for (const piece of pieces) {
    if ('skipped' in piece) {
      flush()
      joined.push(piece)
      continue
    }
    const last = run.at(-1)
    if (last !== undefined && !follows(last, piece)) flush()
    run.push(piece)
  }
  flush()
  return joined
}

const JOIN_MS = 100

const follows = (last: DataPiece, next: DataPiece): boolean =>
  last.stream === next.stream &&
  last.offset + last.data.length === next.offset &&
  (next.at - last.at < JOIN_MS || unfinished(last.data) > 0)

/** How many bytes at the end to leave for the next page, because they are the start of a split character. */
const splitTail = (pieces: readonly OutputPiece[]): number => {
  const last = pieces.at(-1)
  if (last === undefined || 'skipped' in last) return 0
  const tail = unfinished(last.data)
  // A page that has only those bytes must contain them, or its reader would ask forever.
  return tail < last.data.length ? tail : 0
}

/** Length of an incomplete UTF-8 sequence at the end, 0 to 3. */
const unfinished = (data: Uint8Array): number => {
  for (let back = 1; back <= Math.min(3, data.length); back++) {
    const byte = data[data.length - back]!
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > back ? back : 0
  }
  return 0
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

const encodePiece = (piece: OutputPiece, held: number): WirePiece => {
  if ('skipped' in piece) return piece
  const data = piece.data.subarray(0, piece.data.length - held)
  const about = { stream: piece.stream, offset: piece.offset, at: new Date(piece.at).toISOString() }
  try {
    return { ...about, text: utf8.decode(data) }
  } catch {
    return { ...about, base64: Buffer.from(data.buffer, data.byteOffset, data.length).toString('base64') }
  }
}
