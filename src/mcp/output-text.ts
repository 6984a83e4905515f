import type { OutputPage, OutputPiece } from '../engine/deputy.ts'

export interface OutputText {
  readonly text: string
  readonly next_cursor: number
  readonly skipped_bytes: number
}

/**
 * Decodes a page of output as UTF-8. If the page ends within a character, its bytes are left for the next page and
 * `next_cursor` points to them. A character that is split by output of the other stream is put together again.
 */
export const outputText = (page: OutputPage, only?: 'stdout' | 'stderr'): OutputText => {
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
    let data = piece === page.pieces[0] ? afterPartialCharacter(piece.data) : piece.data
    if (piece === last && !page.done && endsPage(piece, page)) {
      held = incompleteTail(data)
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

/** Drops a partial character at the start, because a cursor can point into the middle of one. */
const afterPartialCharacter = (data: Uint8Array): Uint8Array => {
  let start = 0
  while (start < 3 && start < data.length && (data[start]! & 0xc0) === 0x80) start += 1
  return data.subarray(start)
}

/** Counts the bytes of an incomplete character at the end. */
const incompleteTail = (data: Uint8Array): number => {
  for (let back = 1; back <= Math.min(3, data.length); back++) {
    const byte = data[data.length - back]!
    if ((byte & 0xc0) === 0x80) continue
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return needed > back ? back : 0
  }
  return 0
}
