import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLineBuffer, textOf } from '../../../web/log/line-buffer.ts'

const AT = Date.parse('2026-01-01T00:00:00.000Z')

const linesOf = (...pieces: string[]) => {
  const buffer = createLineBuffer()
  for (const piece of pieces) buffer.push(piece, 'stdout', AT)
  return buffer.lines
}
const texts = (...pieces: string[]): string[] => linesOf(...pieces).map(textOf)

describe('lines of a log', () => {
  it('end at a newline, wherever the pieces are cut', () => {
    expect(texts('one\ntw', 'o\n', 'three')).toEqual(['one', 'two', 'three'])
    expect(texts('a\r\nb\r', '\nc')).toEqual(['a', 'b', 'c'])
    expect(texts('\n\nx')).toEqual(['', '', 'x'])
  })

  it('begin anew at a carriage return', () => {
    expect(texts('10%\r20%\r100%\ndone\n')).toEqual(['100%', 'done'])
    expect(texts('50%\r', '60%')).toEqual(['60%'])
    expect(texts('kept\r')).toEqual(['kept'])
  })

  it('keep the streams apart', () => {
    const buffer = createLineBuffer()
    buffer.push('out', 'stdout', AT)
    buffer.push('err\n', 'stderr', AT)
    buffer.push('more\n', 'stdout', AT)
    expect(buffer.lines.map(line => [line.stream, textOf(line)])).toEqual([
      ['stdout', 'out'],
      ['stderr', 'err'],
      ['stdout', 'more'],
    ])
  })

  it('have the colours of the terminal as classes, over pieces and lines', () => {
    const [first, second] = linesOf('\x1b[1;31mred', '\nstill\x1b[0m plain')
    expect(first?.spans).toEqual([{ text: 'red', style: 'fg1 bold' }])
    expect(second?.spans).toEqual([
      { text: 'still', style: 'fg1 bold' },
      { text: ' plain', style: '' },
    ])
    expect(linesOf('\x1b[38;5;196mx\x1b[39my')[0]?.spans[0]).toEqual({ text: 'x', style: 'fg1' })
    expect(linesOf('\x1b[48;2;0;0;200mx')[0]?.spans[0]).toEqual({ text: 'x', style: 'bg4' })
  })

  it('hold no control sequences, titles or cursor moves', () => {
    expect(texts('\x1b]0;title\x07a\x1b[2Kb\x1b[10;5Hc\x1b[?25ld\x07\x00')).toEqual(['abcd'])
    expect(texts('a\x1b', '[3', '1mb')).toEqual(['ab'])
  })

  it('come out the same, however the output is cut', () => {
    const output = fc.array(
      fc.constantFrom('a', 'é', '\n', '\r', '\r\n', '\x1b[31m', '\x1b[0m', '\x1b]0;t\x07', '\x1b[2K'),
      { maxLength: 40 },
    )
    fc.assert(
      fc.property(output, fc.nat(), (parts, place) => {
        const text = parts.join('')
        const cut = text.length === 0 ? 0 : place % text.length
        expect(linesOf(text.slice(0, cut), text.slice(cut))).toEqual(linesOf(text))
      }),
    )
  })

  it('are dropped from the beginning when there are too many, and keep their numbers', () => {
    const buffer = createLineBuffer()
    buffer.push('x\n'.repeat(20_001), 'stdout', AT)
    expect([buffer.dropped, buffer.lines.length, buffer.lines[0]?.number]).toEqual([2_000, 18_001, 2_001])
    buffer.push('last\n', 'stdout', AT)
    expect(buffer.lines.at(-1)?.number).toBe(20_002)
  })
})
