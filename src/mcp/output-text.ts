import type { OutputPage, OutputPiece } from '../engine/deputy.ts'
import { fromFirstCharacter, incompleteTail, upToLastLine } from '../jobs/line-borders.ts'

export interface OutputText {
  readonly text: string
  readonly next_cursor: number
  readonly skipped_bytes: number
}

export interface OutputTextOptions {
  /** Only the text of this stream. */
  readonly only?: 'stdout' | 'stderr' | undefined
  /** The page has as many bytes as were asked for, so it may end within a line. */
  readonly full?: boolean
}

/**
 * Decodes a page of output as UTF-8. If the page ends within a character, or a full page within a line, those bytes
 * are left for the next page and `next_cursor` points to them. A character that is split by output of the other
 * stream is put together again.
 */
export const outputText = (page: OutputPage, { only, full = false }: OutputTextOptions = {}): OutputText => {
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  const last = page.pieces.findLast(isData)
  let text = ''
  let skipped = 0
  let held = 0
  for (const piece of page.pieces) {
    if (!isData(piece)) {
      skipped += piece.skipped
      text += `\n[… ${piece.skipped} bytes were not kept …]\n`
      continue
    }
    let data = piece === page.pieces[0] ? fromFirstCharacter(piece.data) : piece.data
    if (piece === last && !page.done && endsPage(piece, page)) {
      held = full ? data.length - upToLastLine(data).length : incompleteTail(data)
      // Never return an empty page here: the reader would request the same page for ever.
      if (held === data.length) held = 0
      data = data.subarray(0, data.length - held)
    }
    if (only === undefined || piece.stream === only)
      text += decoders[piece.stream].decode(data, { stream: true })
  }
  text += decoders.stdout.decode() + decoders.stderr.decode()
  return { text, next_cursor: page.next_cursor - held, skipped_bytes: skipped }
}

type DataPiece = Extract<OutputPiece, { data: Uint8Array }>

const isData = (piece: OutputPiece): piece is DataPiece => 'data' in piece

const endsPage = (piece: DataPiece, page: OutputPage): boolean =>
  piece.offset + piece.data.length === page.next_cursor
