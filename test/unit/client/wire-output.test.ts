import fc from 'fast-check'
import { expect, it } from 'vitest'
import { encodePage } from '../../../src/client/encode-output.ts'
import { decodePage } from '../../../src/client/wire-output.ts'
import type { OutputPage } from '../../../src/engine/deputy.ts'

const page = (data: Uint8Array): OutputPage => ({
  job_id: 'x',
  status: 'running',
  pieces: [
    { stream: 'stderr', offset: 3, at: 5, data },
    { skipped: 9, offset: 40 },
  ],
  next_cursor: 49,
  done: false,
})

it('brings every byte of output over JSON unchanged', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), data => {
      const back = decodePage(JSON.parse(JSON.stringify(encodePage(page(data)))))
      const [piece, gap] = back.pieces
      expect(gap).toEqual({ skipped: 9, offset: 40 })
      expect(piece && 'data' in piece && Array.from(piece.data)).toEqual(Array.from(data))
    }),
  )
})

it('writes valid UTF-8 as readable text, a byte order mark included', () => {
  const [piece] = encodePage(page(new TextEncoder().encode('\ufeffgrün\n'))).pieces
  expect(piece).toMatchObject({ text: '\ufeffgrün\n' })
})
