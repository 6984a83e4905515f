import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createOutputBatch } from '../../../src/output/output-batch.ts'

const open = () =>
  createOutputBatch({ sink: { position: 0 }, outputBytes: 0, secrets: [], format: 'text', now: () => 1 })

describe('a batch of output', () => {
  afterEach(() => {
    vi.restoreAllMocks()
  })

  it('has every byte in order, with offsets that continue', () => {
    const piece = fc.record({
      stream: fc.constantFrom('stdout' as const, 'stderr' as const),
      bytes: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constant(200_000)),
      skipped: fc.constantFrom(0, 0, 7),
      isTaken: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), pieces => {
        const batch = open()
        const chunks = []
        const sent = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) }
        let number = 0
        for (const { stream, bytes, skipped, isTaken } of pieces) {
          const data = Buffer.alloc(bytes, ++number)
          batch.output[stream](data)
          sent[stream] = Buffer.concat([sent[stream], data])
          if (skipped > 0) batch.skip(skipped)
          if (isTaken) chunks.push(...batch.take().chunks)
        }
        chunks.push(...batch.take().chunks)
        for (const stream of ['stdout', 'stderr'] as const) {
          const own = chunks.filter(chunk => chunk.stream === stream).map(({ data }) => data)
          expect(Buffer.concat(own).equals(sent[stream])).toBe(true)
        }
        let end = 0
        for (const { offset, data } of chunks) {
          expect(offset).toBeGreaterThanOrEqual(end)
          end = offset + data.length
        }
        expect(batch.pendingBytes).toBe(0)
      }),
      { numRuns: 50 },
    )
  })

  it('joins pieces that follow each other', () => {
    const batch = open()
    for (const text of ['one ', 'two ', 'three']) batch.output.stdout(Buffer.from(text))
    batch.output.stderr(Buffer.from('no'))
    const { chunks } = batch.take()
    expect(chunks.map(({ stream, offset, data }) => [stream, offset, String(data)])).toEqual([
      ['stdout', 0, 'one two three'],
      ['stderr', 13, 'no'],
    ])
  })

  it('copies no byte twice, however small the pieces are', () => {
    const concat = vi.spyOn(Buffer, 'concat')
    const batch = open()
    for (let i = 0; i < 500; i++) batch.output.stdout(Buffer.alloc(1024))
    batch.take()
    const copied = concat.mock.results.reduce((sum, { value }) => sum + (value as Buffer).length, 0)
    expect(copied).toBe(500 * 1024)
  })
})
