import fc from 'fast-check'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { queryReader } from '../../../src/http/query.ts'
import { AppError } from '../../../src/jobs/errors.ts'

const read = queryReader(
  z.strictObject({
    limit: z.int().min(1).max(100).exactOptional(),
    seconds: z.number().min(0).exactOptional(),
    raw: z.boolean().exactOptional(),
    status: z.enum(['a', 'b']).exactOptional(),
    text: z.string().min(1).default('none'),
  }),
)

it('reads numbers, booleans and text, and fills in defaults', () => {
  expect(read('/x')).toEqual({ text: 'none' })
  expect(read('/x?')).toEqual({ text: 'none' })
  expect(read('/x?limit=20&seconds=0.5&raw=1&status=b&text=a%20b+c')).toEqual({
    limit: 20,
    seconds: 0.5,
    raw: true,
    status: 'b',
    text: 'a b c',
  })
})

it.each([
  ['limit=0x10', '\'limit\' is "0x10"'],
  ['limit=1.5', '\'limit\' is "1.5"'],
  ['limit=%00', "'limit'"],
  ['seconds=Infinity', '\'seconds\' is "Infinity"'],
  ['seconds=-1', '\'seconds\' is "-1"'],
  ['raw=yes', '\'raw\' is "yes"'],
  ['status=c', '\'status\' is "c"'],
  ['text=', '\'text\' is ""'],
  ['limits=1', "did you mean 'limit'?"],
  ['limit=1&limit=1', 'given twice'],
  ['__proto__=1', "unknown parameter '__proto__'"],
  ['constructor=1', "unknown parameter 'constructor'"],
])('refuses ?%s', (query, part) => {
  expect(() => read(`/x?${query}`)).toThrow(part)
})

it('shows no megabyte of a bad value', () => {
  expect(() => read(`/x?status=${'z'.repeat(10_000)}`)).toThrow(/^.{0,300}$/)
})

it('answers any query with values or an invalid error', () => {
  fc.assert(
    fc.property(fc.webQueryParameters(), query => {
      try {
        read(`/x?${query}`)
      } catch (error) {
        expect(error).toBeInstanceOf(AppError)
      }
    }),
  )
})
