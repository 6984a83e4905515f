import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { globMatcher } from '../../../src/jobs/globs.ts'

describe('an artifact glob', () => {
  it.each([
    ['*.log', 'build.log', true],
    ['*.log', 'logs/build.log', true],
    ['*.log', 'build.log.txt', false],
    ['dist/*', 'dist/a.js', true],
    ['dist/*', 'dist/deep/a.js', false],
    ['dist/**', 'dist/deep/a.js', true],
    ['dist/', 'dist/deep/a.js', true],
    ['**/*.js', 'a.js', true],
    ['**/*.js', 'x/y/a.js', true],
    ['report.{html,xml}', 'report.xml', true],
    ['report.{html,xml}', 'report.txt', false],
    ['file[0-9].txt', 'file7.txt', true],
    ['file[!0-9].txt', 'file7.txt', false],
    ['/work/out.bin', 'out.bin', true],
    ['./out/x', 'out/x', true],
    ['a+b(c).txt', 'a+b(c).txt', true],
    ['[z-a].txt', '[z-a].txt', true],
    ['?.txt', 'ab.txt', false],
  ])('%s and %s: %s', (glob, path, expected) => {
    expect(globMatcher([glob])(path)).toBe(expected)
  })

  it('never throws, whatever it is', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (glob, path) => {
        expect(globMatcher([glob])(path)).toBeTypeOf('boolean')
      }),
      { numRuns: 5000 },
    )
  })
})
