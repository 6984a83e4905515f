import fc from 'fast-check'
import { expect, it } from 'vitest'
import { disposition } from '../../../src/http/download.ts'

it('names the file without its directory', () => {
  expect(disposition('dist/app.js')).toBe(`attachment; filename="app.js"; filename*=UTF-8''app.js`)
})

it('keeps the real name for clients that can read it', () => {
  expect(disposition('grün "quoted".txt')).toBe(
    `attachment; filename="gr_n _quoted_.txt"; filename*=UTF-8''gr%C3%BCn%20%22quoted%22.txt`,
  )
})

it('cannot be broken out of by any name', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), name => {
      expect(disposition(name)).toMatch(
        /^attachment; filename="[\x20-\x21\x23-\x5b\x5d-\x7e]+"; filename\*=UTF-8''[\w.~%-]+$/,
      )
      expect(() => new Headers({ 'content-disposition': disposition(name) })).not.toThrow()
    }),
  )
})
