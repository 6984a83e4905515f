import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OutputPage } from '../../../src/engine/deputy.ts'
import { outputText } from '../../../src/mcp/output-text.ts'

const page = (data: Uint8Array, { from = 0, to = data.length, done = false } = {}): OutputPage => ({
  job_id: 'a',
  status: 'running',
  pieces: to > from ? [{ stream: 'stdout', offset: from, data: data.subarray(from, to), at: 0 }] : [],
  next_cursor: to,
  done,
})

describe('output as text', () => {
  it('is the same however it is paged', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', maxLength: 60 }),
        fc.integer({ min: 4, max: 16 }),
        (text, size) => {
          const data = new TextEncoder().encode(text)
          let read = ''
          for (let cursor = 0, turns = 0; cursor < data.length && turns < 500; turns++) {
            const to = Math.min(data.length, cursor + size)
            const next = outputText(page(data, { from: cursor, to, done: to === data.length }))
            read += next.text
            cursor = next.next_cursor
          }
          expect(read).toBe(text)
        },
      ),
    )
  })

  it('ends with a whole line where a page is full and has one', () => {
    const data = new TextEncoder().encode('one\ntwo\nthree')
    expect(outputText(page(data), { full: true })).toMatchObject({ text: 'one\ntwo\n', next_cursor: 8 })
    expect(outputText(page(data), { full: false })).toMatchObject({
      text: 'one\ntwo\nthree',
      next_cursor: 13,
    })
    expect(outputText(page(data, { from: 8 }), { full: true })).toMatchObject({
      text: 'three',
      next_cursor: 13,
    })
  })

  it('moves on although the last bytes will never become a character', () => {
    expect(outputText(page(Uint8Array.of(0xe2, 0x82)))).toMatchObject({ text: '\ufffd', next_cursor: 2 })
  })

  it('puts a character together that the other stream cut in two', () => {
    const [euro] = [new TextEncoder().encode('€')]
    const pieces = [
      { stream: 'stdout' as const, offset: 0, data: euro!.subarray(0, 1), at: 0 },
      { stream: 'stderr' as const, offset: 1, data: Uint8Array.of(33), at: 0 },
      { stream: 'stdout' as const, offset: 2, data: euro!.subarray(1), at: 0 },
    ]
    expect(outputText({ ...page(new Uint8Array()), pieces, next_cursor: 4, done: true }).text).toBe('!€')
  })

  it('says what was not kept', () => {
    const pieces = [{ skipped: 5000, offset: 10 }]
    expect(outputText({ ...page(new Uint8Array()), pieces, next_cursor: 5010 })).toMatchObject({
      text: expect.stringContaining('5000 bytes were not kept'),
      skipped_bytes: 5000,
    })
  })
})
