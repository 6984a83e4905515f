import { Buffer } from 'node:buffer'
import type { OutputPage, OutputPiece } from '../engine/deputy.ts'
import type { JobState } from '../jobs/states.ts'

/**
 * Output as JSON. A piece is text where its bytes are valid UTF-8 and base64 where they are not (binary
 * output, or a character cut in two by a chunk border), so that the bytes survive the way to a pipe.
 */
export type WirePiece =
  | {
      readonly stream: 'stdout' | 'stderr'
      readonly offset: number
      readonly at: number
      readonly text?: string
      readonly base64?: string
    }
  | { readonly skipped: number; readonly offset: number }

export interface WirePage {
  readonly job_id: string
  readonly status: JobState
  readonly pieces: readonly WirePiece[]
  readonly next_cursor: number
  readonly done: boolean
}

export const encodePage = (page: OutputPage): WirePage => ({ ...page, pieces: page.pieces.map(encodePiece) })

export const decodePage = (page: WirePage): OutputPage => ({ ...page, pieces: page.pieces.map(decodePiece) })

const encodePiece = (piece: OutputPiece): WirePiece => {
  if ('skipped' in piece) return piece
  const { stream, offset, at, data } = piece
  try {
    return {
      stream,
      offset,
      at,
      text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data),
    }
  } catch {
    return { stream, offset, at, base64: Buffer.from(data).toString('base64') }
  }
}

const decodePiece = (piece: WirePiece): OutputPiece => {
  if ('skipped' in piece) return piece
  const { stream, offset, at } = piece
  const data =
    piece.base64 === undefined ? Buffer.from(piece.text ?? '', 'utf8') : Buffer.from(piece.base64, 'base64')
  return { stream, offset, at, data }
}
