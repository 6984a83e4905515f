import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createStreamReader } from '../../../../src/providers/container/stream-frames.ts'

const frame = (stream: number, data: Buffer): Buffer => {
  const header = Buffer.alloc(8)
  header[0] = stream
  header.writeUInt32BE(data.length, 4)
  return Buffer.concat([header, data])
}

describe('the stream of an engine', () => {
  it('is read the same however it is cut', () => {
    const piece = fc.record({ stream: fc.constantFrom(1, 2), data: fc.uint8Array({ maxLength: 40 }) })
    fc.assert(
      fc.property(fc.array(piece), fc.array(fc.integer({ min: 1, max: 13 })), (pieces, cuts) => {
        const whole = Buffer.concat(pieces.map(({ stream, data }) => frame(stream, Buffer.from(data))))
        const read = { stdout: '', stderr: '' }
        const push = createStreamReader((stream, data) => {
          read[stream] += data.toString('hex')
        })
        let at = 0
        for (const cut of [...cuts, whole.length]) {
          push(whole.subarray(at, at + cut))
          at += cut
        }
        const sent = (stream: number): string =>
          pieces
            .flatMap(one => (one.stream === stream ? [Buffer.from(one.data).toString('hex')] : []))
            .join('')
        expect(read).toEqual({ stdout: sent(1), stderr: sent(2) })
      }),
    )
  })

  it('is refused when it is something else', () => {
    expect(() => createStreamReader(() => {})(Buffer.from('HTTP/1.1 500 no'))).toThrow('cannot be read')
  })
})
