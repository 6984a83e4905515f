import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRedactor, createTextRedactor, REDACTED, secretPatterns } from '../../../src/output/redactor.ts'

const redactAll = (patterns: string[], chunks: Buffer[]): string => {
  const redactor = createRedactor(patterns)
  return Buffer.concat([...chunks.map(chunk => redactor.push(chunk)), redactor.flush()]).toString('latin1')
}

const cut = (data: Buffer, at: readonly number[]): Buffer[] => {
  const borders = [0, ...at.map(n => n % (data.length + 1)).sort((a, b) => a - b), data.length]
  return borders.slice(1).map((end, index) => data.subarray(borders[index]!, end))
}

describe('redacting secrets', () => {
  it('does not depend on chunk boundaries', () => {
    const letters = fc.constantFrom('a', 'b', 'c')
    const word = fc.array(letters, { minLength: 4, maxLength: 7 }).map(list => list.join(''))
    fc.assert(
      fc.property(
        fc.array(word, { minLength: 1, maxLength: 4 }),
        fc.array(fc.oneof(letters, word), { maxLength: 60 }).map(list => list.join('')),
        fc.array(fc.nat(), { maxLength: 12 }),
        (secrets, text, borders) => {
          const patterns = secretPatterns(secrets)
          const whole = redactAll(patterns, [Buffer.from(text)])
          expect(redactAll(patterns, cut(Buffer.from(text), borders))).toBe(whole)
          for (const secret of secrets) expect(whole.replaceAll(REDACTED, '|')).not.toContain(secret)
        },
      ),
      { numRuns: 500 },
    )
  })

  it('leaves everything else as it was, byte for byte', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 500 }),
        fc.array(fc.nat(), { maxLength: 8 }),
        (bytes, borders) => {
          const data = Buffer.from(bytes)
          const patterns = secretPatterns(['a secret nobody prints at random'])
          expect(Buffer.from(redactAll(patterns, cut(data, borders)), 'latin1').equals(data)).toBe(true)
        },
      ),
    )
  })

  it('holds back only what may be the beginning of a secret', () => {
    const redactor = createRedactor(secretPatterns(['hunter22']))
    expect(redactor.push(Buffer.from('password: ')).toString()).toBe('password: ')
    expect(redactor.push(Buffer.from('hunt')).toString()).toBe('')
    expect(redactor.push(Buffer.from('ing')).toString()).toBe('hunting')
    expect(redactor.push(Buffer.from('hunter')).toString()).toBe('')
    expect(redactor.push(Buffer.from('22!')).toString()).toBe(`${REDACTED}!`)
    expect(redactor.push(Buffer.from('hunter2')).toString()).toBe('')
    expect(redactor.flush().toString()).toBe('hunter2')
  })

  it('waits for the longer of two secrets that begin alike', () => {
    const patterns = secretPatterns(['token', 'token-with-more'])
    expect(redactAll(patterns, [Buffer.from('token'), Buffer.from('-with-more token')])).toBe(
      `${REDACTED} ${REDACTED}`,
    )
  })

  it('finds the encoded forms of a secret at any position', () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 12, maxLength: 40, unit: 'grapheme' }).filter(text => text.trim() === text),
        fc.string({ maxLength: 5 }),
        fc.string({ maxLength: 5 }),
        (secret, before, after) => {
          const redact = createTextRedactor(secretPatterns([secret]))
          const core = Buffer.from(secret).toString('base64').slice(4, -8)
          expect(redact(`${before}${secret}${after}`)).not.toContain(secret)
          expect(redact(Buffer.from(secret).toString('base64'))).toBe(REDACTED)
          if (Buffer.byteLength(before) % 3 === 0)
            expect(redact(Buffer.from(before + secret + after).toString('base64'))).not.toContain(core)
          expect(redact(encodeURIComponent(secret))).toBe(REDACTED)
          expect(redact(JSON.stringify(secret))).toBe(`"${REDACTED}"`)
        },
      ),
    )
  })

  it('finds base64 of a longer text at every alignment', () => {
    const secret = 'correct horse battery'
    for (const prefix of ['', 'u', 'us', 'use', 'user:'])
      expect(
        createTextRedactor(secretPatterns([secret]))(Buffer.from(prefix + secret).toString('base64')),
      ).toContain(REDACTED)
  })

  it('finds the lines of a key that is printed indented', () => {
    const key = '-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n'
    const text = createTextRedactor(secretPatterns([key]))(
      key
        .split('\n')
        .map(line => `  ${line}`)
        .join('\n'),
    )
    expect(text).not.toContain('MIIEvQ')
    expect(text).not.toContain('hkiG9w')
  })

  it('ignores secrets of three characters', () => {
    expect(createTextRedactor(secretPatterns(['yes', '1', '']))('yes, 1 of them')).toBe('yes, 1 of them')
  })

  it('is fast enough for a gigabyte', () => {
    const redactor = createRedactor(
      secretPatterns(['sk-ant-api03-0123456789abcdefghijklmnopqrstuvwxyz', 'another-secret-value']),
    )
    const chunk = Buffer.from('the quick brown fox jumps over the lazy dog, again and again\n'.repeat(1000))
    const start = performance.now()
    for (let round = 0; round < 200; round++) redactor.push(chunk)
    const megabytesPerSecond = (200 * chunk.length) / 1e6 / ((performance.now() - start) / 1000)
    expect(megabytesPerSecond).toBeGreaterThan(20)
  })
})

describe('a secret of 50 KB', () => {
  const KB = 1024
  it.each([
    [
      'on one line',
      randomBytes(50 * KB)
        .toString('base64')
        .slice(0, 50 * KB),
    ],
    ['of one character', 'a'.repeat(50 * KB)],
    ['with quotes and spaces', `{"key": "${'p q"\\\\'.repeat(10 * KB)}"}`.slice(0, 50 * KB)],
    ['of many lines', Array.from({ length: 800 }, () => randomBytes(45).toString('base64')).join('\n')],
  ])('%s is redacted like any other, in time', (_, secret) => {
    const began = performance.now()
    const patterns = secretPatterns([secret])
    for (const form of [secret, JSON.stringify(secret).slice(1, -1), Buffer.from(secret).toString('base64')])
      for (const size of [4096, 65_536]) {
        const redactor = createRedactor(patterns)
        const data = Buffer.from(`before ${form} after ${'b'.repeat(100 * KB)}`)
        const out: Buffer[] = []
        for (let at = 0; at < data.length; at += size) out.push(redactor.push(data.subarray(at, at + size)))
        out.push(redactor.flush())
        expect(Buffer.concat(out).toString().slice(0, 40)).toBe('before [redacted] after bbbbbbbbbbbbbbbb')
      }
    expect(createTextRedactor(patterns)(`x${secret}y`)).toBe('x[redacted]y')
    expect(performance.now() - began).toBeLessThan(10_000)
  })
})
