import type { OutputPage, OutputPiece } from '../engine/deputy.ts'
import type { JobState } from '../jobs/states.ts'

/**
 * Output as JSON. A piece is text when its bytes are valid UTF-8, and base64 otherwise (binary output, or a character
 * split by a chunk border), so that every byte is preserved.
 */
export type WirePiece =
  | {
      readonly stream: 'stdout' | 'stderr'
      readonly offset: number
      readonly at: string
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

export const decodePage = (page: WirePage): OutputPage => ({ ...page, pieces: page.pieces.map(decodePiece) })

const decodePiece = (piece: WirePiece): OutputPiece => {
  if ('skipped' in piece) return piece
  const { stream, offset, at, text = '', base64 } = piece
  const data = base64 === undefined ? encoder.encode(text) : fromBase64(base64)
  return { stream, offset, at: Date.parse(at), data }
}

const encoder = new TextEncoder()

const fromBase64 = (text: string): Uint8Array =>
  Uint8Array.from(atob(text), character => character.charCodeAt(0))
