import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createSymptoms } from '../../../src/runtimes/local/limit-error-scanner.ts'

const PHRASE = 'No space left on device'

describe('symptoms', () => {
  it('are seen wherever the chunks are cut, while they are near the end', () => {
    fc.assert(
      fc.property(
        fc.nat(5000),
        fc.nat(16_000),
        fc.array(fc.integer({ min: 1, max: 40_000 }), { minLength: 1, maxLength: 20 }),
        (before, after, sizes) => {
          const text = Buffer.from('x'.repeat(before) + PHRASE + 'y'.repeat(after))
          const symptoms = createSymptoms()
          for (let from = 0, n = 0; from < text.length; n++) {
            const to = from + sizes[n % sizes.length]!
            symptoms.look(text.subarray(from, to))
            from = to
          }
          expect([symptoms.saw('disk'), symptoms.saw('memory')]).toEqual([true, false])
        },
      ),
    )
  })

  it('that were long ago are not what ended a command', () => {
    const symptoms = createSymptoms()
    expect(symptoms.saw('disk')).toBe(false)
    symptoms.look(Buffer.from(PHRASE))
    for (let i = 0; i < 20; i++) symptoms.look(Buffer.alloc(4096, 'y'))
    expect(symptoms.saw('disk')).toBe(false)
  })

  it('do not hold what was printed', () => {
    const data = Buffer.from(PHRASE)
    const symptoms = createSymptoms()
    symptoms.look(data)
    data.fill(0)
    expect(symptoms.saw('disk')).toBe(true)
  })
})
