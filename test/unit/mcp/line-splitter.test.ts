import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLineSplitter } from '../../../src/mcp/bridge/line-splitter.ts'

describe('cutting a stream into lines', () => {
  it('gives the same lines wherever the stream is cut', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.string({ minLength: 1 }).map(text => text.replace(/[\r\n ]/g, '.')),
          { maxLength: 10 },
        ),
        fc.array(fc.nat(40), { maxLength: 20 }),
        (texts, cuts) => {
          const bytes = Buffer.from(texts.map(text => `${text}\n`).join(''))
          const lines: string[] = []
          const feed = createLineSplitter(line => lines.push(line.toString()))
          let from = 0
          for (const cut of cuts) {
            feed(bytes.subarray(from, from + cut))
            from += cut
          }
          feed(bytes.subarray(from))
          expect(lines).toEqual(texts)
        },
      ),
    )
  })

  it('takes both line ends and leaves out empty lines', () => {
    const lines: string[] = []
    createLineSplitter(line => lines.push(line.toString()))(Buffer.from('a\r\n\n\r\nb\nrest'))
    expect(lines).toEqual(['a', 'b'])
  })
})
