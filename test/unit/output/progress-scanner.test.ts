import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createProgressScanner } from '../../../src/output/progress-scanner.ts'
import { createLineReader } from '../../../src/providers/local/line-reader.ts'

describe('lines and progress', () => {
  it('do not depend on chunk boundaries', () => {
    const text = Buffer.from(
      'a\n::progress:: one\nx ::progress:: no\n::progress::two\n\n::progress:: ünï\u0007\n',
    )
    fc.assert(
      fc.property(fc.array(fc.nat(text.length), { maxLength: 8 }), borders => {
        const at = [0, ...borders.sort((a, b) => a - b), text.length]
        const progress: string[] = []
        const lines: string[] = []
        const scan = createProgressScanner(line => progress.push(line))
        const read = createLineReader(1000, line => lines.push(line))
        for (const [index, end] of at.slice(1).entries()) {
          scan(text.subarray(at[index]!, end))
          read(text.subarray(at[index]!, end))
        }
        expect(progress).toEqual(['one', 'two', 'ünï'])
        expect(lines.map(line => `${line}\n`).join('')).toBe(text.toString())
      }),
    )
  })

  it('are bounded', () => {
    const lines: string[] = []
    const read = createLineReader(10, line => lines.push(line))
    for (let index = 0; index < 100; index++) read(Buffer.alloc(1000, 97))
    read(Buffer.from('\nnext\n'))
    expect(lines).toEqual(['a'.repeat(10), 'next'])
  })
})
