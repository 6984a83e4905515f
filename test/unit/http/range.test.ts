import fc from 'fast-check'
import { expect, it } from 'vitest'
import { parseRange } from '../../../src/http/range.ts'

it.each([
  ['bytes=0-0', { start: 0, end: 0 }],
  ['bytes=2-5', { start: 2, end: 5 }],
  ['bytes=2-', { start: 2, end: 9 }],
  ['bytes=-3', { start: 7, end: 9 }],
  ['bytes=-30', { start: 0, end: 9 }],
  ['bytes=8-1000', { start: 8, end: 9 }],
  ['BYTES= 1-2 ', { start: 1, end: 2 }],
])('reads %s of ten bytes', (header, range) => expect(parseRange(header, 10)).toEqual(range))

it.each(['bytes=10-', 'bytes=10-20', 'bytes=-0'])('cannot satisfy %s of ten bytes', header =>
  expect(parseRange(header, 10)).toBe('unsatisfiable'),
)

it.each([
  null,
  '',
  'bytes=',
  'bytes=-',
  'bytes=5-2',
  'bytes=0-1,3-4',
  'lines=1-2',
  'bytes=a-b',
  'bytes=1--2',
])('ignores %j', header => expect(parseRange(header, 10)).toBeUndefined())

it('never leaves the file', () => {
  fc.assert(
    fc.property(fc.nat(1000), fc.nat(1000), fc.nat(500), (from, to, size) => {
      const range = parseRange(`bytes=${from}-${to}`, size)
      if (typeof range !== 'object') return
      expect(range.start).toBeLessThanOrEqual(range.end)
      expect(range.end).toBeLessThan(size)
    }),
  )
})

it('satisfies nothing of an empty file', () => {
  expect(parseRange('bytes=0-', 0)).toBe('unsatisfiable')
  expect(parseRange('bytes=-5', 0)).toBe('unsatisfiable')
})
