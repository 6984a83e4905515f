import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLimitErrorScanner } from '../../../src/output/limit-error-scanner.ts'

const PHRASE = 'No space left on device'

describe('the scanner for errors about limits', () => {
  it('finds errors near the end of the output, whatever the chunk boundaries', () => {
    fc.assert(
      fc.property(
        fc.nat(5000),
        fc.nat(16_000),
        fc.array(fc.integer({ min: 1, max: 40_000 }), { minLength: 1, maxLength: 20 }),
        (before, after, sizes) => {
          const text = Buffer.from('x'.repeat(before) + PHRASE + 'y'.repeat(after))
          const scanner = createLimitErrorScanner()
          for (let from = 0, n = 0; from < text.length; n++) {
            const to = from + sizes[n % sizes.length]!
            scanner.scan(text.subarray(from, to))
            from = to
          }
          expect([scanner.found('disk'), scanner.found('memory')]).toEqual([true, false])
        },
      ),
    )
  })

  it('ignores errors long before the end of the output', () => {
    const scanner = createLimitErrorScanner()
    expect(scanner.found('disk')).toBe(false)
    scanner.scan(Buffer.from(PHRASE))
    for (let i = 0; i < 20; i++) scanner.scan(Buffer.alloc(4096, 'y'))
    expect(scanner.found('disk')).toBe(false)
  })

  it('does not retain chunks', () => {
    const data = Buffer.from(PHRASE)
    const scanner = createLimitErrorScanner()
    scanner.scan(data)
    data.fill(0)
    expect(scanner.found('disk')).toBe(true)
  })
})
