import fc from 'fast-check'
import { expect, it } from 'vitest'
import { encodePage } from '../../../src/client/encode-output.ts'
import { decodeEvent, encodeEvent } from '../../../src/client/wire-event.ts'
import { decodePage } from '../../../src/client/wire-output.ts'
import type { OutputPage, OutputPiece } from '../../../src/engine/deputy.ts'

const pageOf = (pieces: OutputPiece[], done = false): OutputPage => ({
  job_id: 'x',
  status: done ? 'success' : 'running',
  pieces,
  next_cursor: Math.max(
    ...pieces.map(piece => piece.offset + ('data' in piece ? piece.data.length : piece.skipped)),
  ),
  done,
})

it('reads any bytes back exactly, whatever pages they are cut into', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array({ maxLength: 80 }),
        fc.string({ unit: 'grapheme', maxLength: 30 }).map(text => new TextEncoder().encode(text)),
      ),
      fc.integer({ min: 1, max: 9 }),
      (bytes, size) => {
        const seen: number[] = []
        let cursor = 0
        for (let round = 0; cursor < bytes.length; round++) {
          expect(round).toBeLessThanOrEqual(bytes.length)
          const data = bytes.subarray(cursor, cursor + size)
          const page = encodePage({
            ...pageOf([{ stream: 'stdout', offset: cursor, data, at: 0 }]),
            done: cursor + data.length === bytes.length,
          })
          for (const piece of decodePage(page).pieces) if ('data' in piece) seen.push(...piece.data)
          cursor = page.next_cursor
        }
        expect(seen).toEqual(Array.from(bytes))
      },
    ),
  )
})

it('leaves the first bytes of a cut character to the next page', () => {
  const bytes = new TextEncoder().encode('aü')
  const page = encodePage(pageOf([{ stream: 'stdout', offset: 0, data: bytes.subarray(0, 2), at: 0 }]))
  expect(page).toMatchObject({ next_cursor: 1, pieces: [{ text: 'a' }] })
})

it('gives a lone half character at the end of a job as base64', () => {
  const page = encodePage(pageOf([{ stream: 'stdout', offset: 0, data: Uint8Array.of(0xc3), at: 0 }], true))
  expect(page).toMatchObject({ next_cursor: 1, pieces: [{ base64: 'ww==' }] })
})

it('joins pieces of one stream that follow each other, and keeps streams, gaps and pauses apart', () => {
  const data = (text: string) => new TextEncoder().encode(text)
  const page = encodePage(
    pageOf([
      { stream: 'stdout', offset: 0, data: data('a'), at: 0 },
      { stream: 'stdout', offset: 1, data: data('b'), at: 10 },
      { stream: 'stderr', offset: 2, data: data('c'), at: 11 },
      { stream: 'stdout', offset: 3, data: data('d'), at: 12 },
      { skipped: 5, offset: 4 },
      { stream: 'stdout', offset: 9, data: data('e'), at: 13 },
      { stream: 'stdout', offset: 10, data: data('f'), at: 5000 },
    ]),
  )
  expect(page.pieces.map(piece => ('text' in piece ? piece.text : 'gap'))).toEqual([
    'ab',
    'c',
    'd',
    'gap',
    'e',
    'f',
  ])
})

it('brings an event over JSON unchanged', () => {
  const event = { seq: 7, jobId: 'x', at: 1234, type: 'state', data: { to: 'running' } } as const
  expect(decodeEvent(JSON.parse(JSON.stringify(encodeEvent(event))))).toEqual(event)
})
