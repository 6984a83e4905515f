import { describe, expect, it } from 'vitest'
import { createHostCheck } from '../../../src/http/hosts.ts'

const check = (allowed: string[], headers: Record<string, string>) => () =>
  createHostCheck(allowed)(new Headers(headers))

describe('the Host header', () => {
  it.each([
    'localhost',
    'localhost:8764',
    'LOCALHOST:1',
    '127.0.0.1',
    '127.0.0.1:8764',
    '127.1.2.3',
    '[::1]',
    '[::1]:80',
  ])('may be %s', host => expect(check([], { host })).not.toThrow())

  it.each([
    '',
    'evil.example',
    'evil.example:8764',
    'localhost.evil.example',
    'localhost.',
    'evil-localhost',
    '127.0.0.1.evil.example',
    '127.0.0.1@evil.example',
    'user@127.0.0.1',
    '0.0.0.0',
    '0x7f000001',
    '2130706433',
    '[::ffff:127.0.0.1]',
    '[::]',
    '192.168.0.10:8764',
    '127.0.0.1:8764:1',
    '127.0.0.1 evil.example',
    'localhost, evil.example',
  ])('may not be %j', host => expect(check([], { host })).toThrow(/Host .* is not allowed/))

  it('may not be missing', () => expect(check([], {})).toThrow(/Host/))

  it('may be a name of the configuration, with any port or with the one given there', () => {
    expect(check(['deputy.example'], { host: 'deputy.example:443' })).not.toThrow()
    expect(check([' Deputy.Example '], { host: 'DEPUTY.example' })).not.toThrow()
    expect(check(['deputy.example:8443'], { host: 'deputy.example:8443' })).not.toThrow()
    expect(check(['deputy.example:8443'], { host: 'deputy.example' })).toThrow(/Host/)
    expect(check(['deputy.example'], { host: 'sub.deputy.example' })).toThrow(/Host/)
  })

  it('is not opened by an empty name in the configuration', () => {
    expect(check([''], { host: 'evil.example' })).toThrow(/Host/)
    expect(check([''], { host: 'localhost', origin: 'null' })).toThrow(/Origin/)
  })
})

describe('the Origin header', () => {
  it.each(['http://localhost:3000', 'http://127.0.0.1:8764', 'https://localhost', 'http://[::1]:8764'])(
    'may be %s',
    origin => expect(check([], { host: 'localhost', origin })).not.toThrow(),
  )

  it.each([
    'null',
    '',
    'http://evil.example',
    'http://localhost.evil.example',
    'http://evil.example/http://localhost',
    'http://localhost@evil.example',
    'http://evil.example#localhost',
    'file://',
    'chrome-extension://abcdef',
    'ftp://localhost',
    'localhost',
  ])('may not be %j', origin => {
    expect(check([], { host: 'localhost', origin })).toThrow(/Origin .* is not allowed/)
  })

  it('may be a page of a host of the configuration', () => {
    expect(check(['d.example'], { host: 'localhost', origin: 'https://d.example' })).not.toThrow()
  })
})
