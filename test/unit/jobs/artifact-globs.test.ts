import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { globMatcher, globProblem } from '../../../src/jobs/artifact-globs.ts'
import { parseManifest } from '../../../src/jobs/manifest.ts'

describe('an artifact glob', () => {
  it.each([
    ['*.log', 'build.log', true],
    ['*.log', 'logs/build.log', true],
    ['*.log', 'build.log.txt', false],
    ['dist/*', 'dist/a.js', true],
    ['dist/*', 'dist/deep/a.js', false],
    ['dist/**', 'dist/deep/a.js', true],
    ['dist/', 'dist/deep/a.js', true],
    ['dist', 'dist/deep/a.js', true],
    ['build/dist', 'build/dist/a.js', true],
    ['build/dist', 'dist/a.js', false],
    ['/workspace/out.bin', 'out.bin', true],
    ['**/*.js', 'a.js', true],
    ['**/*.js', 'x/y/a.js', true],
    ['report.{html,xml}', 'report.xml', true],
    ['report.{html,xml}', 'report.txt', false],
    ['file[0-9].txt', 'file7.txt', true],
    ['file[!0-9].txt', 'file7.txt', false],
    ['/work/out.bin', 'out.bin', true],
    ['./out/x', 'out/x', true],
    ['a+b(c).txt', 'a+b(c).txt', true],
    ['[z-a].txt', '[z-a].txt', false],
    ['\\[x\\].txt', '[x].txt', true],
    ['[[:digit:]x].txt', '7.txt', true],
    ['a/**/b', 'a/b', true],
    ['a/**/b', 'a/x/y/b', true],
    ['a/**', 'a', false],
    ['**', 'a/b/c', true],
    ['**/**/x', 'x', true],
    ['*a*b*', 'xxaxxbxx', true],
    ['*a*b*', 'xxbxxaxx', false],
    ['{src,test}/**/*.{ts,js}', 'test/deep/a.js', true],
    ['{a,b/{c,d}}/x', 'b/d/x', true],
    ['x{,.txt}', 'x', true],
    ['a{b', 'a{b', true],
    ['[{,]', ',', true],
    ['?.txt', 'ab.txt', false],
  ])('%s and %s: %s', (glob, path, expected) => {
    expect(globMatcher([glob]).matches(path)).toBe(expected)
  })

  it('never throws, whatever it is', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (glob, path) => {
        expect(globMatcher([glob]).matches(path)).toBeTypeOf('boolean')
      }),
      { numRuns: 5000 },
    )
  })

  it.each([
    ['{a,a}'.repeat(24), /more than 64 alternatives/],
    ['x'.repeat(513), /longer than 512/],
    [`{a,b}{c,d}{e,f}{g,h}${'x'.repeat(480)}`, /more than 4096 characters/],
    ['file[0-9.txt', /'\[' without '\]'/],
    ['trailing\\', /ends in a backslash/],
  ])('is refused when it is absurd: %s', (glob, problem) => {
    expect(globProblem(glob)).toMatch(problem)
    expect(globMatcher([glob]).matches('file')).toBe(false)
    expect(() => parseManifest({ task: 'x', artifacts: ['ok', glob] })).toThrow(problem)
  })

  it('gives up when a list costs too much', () => {
    const matcher = globMatcher(Array.from({ length: 50 }, (_, i) => `*${'a'.repeat(200)}${i}`))
    const path = `${'a'.repeat(250)}/`.repeat(16).slice(0, -1)
    for (let i = 0; i < 200_000; i++) matcher.matches(path)
    expect(matcher.isExhausted()).toBe(true)
  })
})

describe('the slowest of 100,000 globs', () => {
  it.each([
    [`${'**/'.repeat(9)}x`, `${'d/'.repeat(60)}y`],
    [`${'*a'.repeat(6)}b`, 'a'.repeat(255)],
    ['*'.repeat(500), 'a'.repeat(255)],
    [`**/${'a'.repeat(250)}b/**/x`, `${`${'a'.repeat(250)}/`.repeat(15)}y`],
  ])('takes less than 10 ms: %s', (glob, path) => {
    expect(fastest(glob, path)).toBeLessThan(10)
  })

  it('takes less than 10 ms', { timeout: 120_000 }, () => {
    const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31)
    const random = generator(seed)
    const slow: unknown[] = []
    for (let pair = 0; pair < 100_000; pair++) {
      const glob = text(random, GLOB_PIECES, 60).slice(0, 512)
      const path = text(random, PATH_PIECES, 400).slice(0, 4096)
      const start = performance.now()
      globMatcher([glob]).matches(path)
      // Other programs take time from this one: what was slow once is tried again.
      if (performance.now() - start > 10 && fastest(glob, path) > 10) slow.push({ seed, glob, path })
    }
    expect(slow).toEqual([])
  })
})

const GLOB_PIECES = [
  '**/',
  '**',
  '*',
  '*a',
  'a',
  'b',
  '?',
  '[ab]',
  '[!a-c]',
  '{a,b}',
  '{a,',
  '}',
  '/',
  'aaaaaaaaaa',
  '\\',
  '.',
]
const PATH_PIECES = ['a', 'aa', 'b', '/', 'a/', 'aaaaaaaaaaaaaaaaaaaa', '.', 'c/d/']

const text = (random: () => number, pieces: readonly string[], most: number): string =>
  Array.from(
    { length: 1 + Math.floor(random() * most) },
    () => pieces[Math.floor(random() * pieces.length)]!,
  ).join('')

const fastest = (glob: string, path: string): number =>
  Math.min(
    ...Array.from({ length: 50 }, () => {
      const start = performance.now()
      globMatcher([glob]).matches(path)
      return performance.now() - start
    }),
  )

/** mulberry32 */
const generator = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
}
