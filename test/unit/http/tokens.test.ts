import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { ensureTokens } from '../../../src/http/tokens.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'deputy-tokens-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const modeOf = (name: string) => statSync(join(directory, name)).mode & 0o777

it('makes two different tokens on the first start, for their owner alone, and keeps them', async () => {
  const first = await ensureTokens(directory)
  expect(first.full).toMatch(/^[\w-]{43}$/)
  expect(first.full).not.toBe(first.read)
  expect([modeOf('token'), modeOf('token-readonly')]).toEqual([0o600, 0o600])
  expect(await ensureTokens(directory)).toEqual(first)
  expect(readdirSync(directory).sort()).toEqual(['session-key', 'token', 'token-readonly'])
})

it('agrees on one token when several start at once', async () => {
  const all = await Promise.all(Array.from({ length: 8 }, () => ensureTokens(directory)))
  expect(new Set(all.map(tokens => tokens.full)).size).toBe(1)
  expect(readFileSync(join(directory, 'token'), 'utf8').trim()).toBe(all[0]!.full)
})

it('takes a token that the user has written, and closes it to others', async () => {
  writeFileSync(join(directory, 'token'), 'my-own-token-of-some-length\r\n')
  chmodSync(join(directory, 'token'), 0o644)
  expect((await ensureTokens(directory)).full).toBe('my-own-token-of-some-length')
  expect(modeOf('token')).toBe(0o600)
})

it.each(['', 'short', 'two words that are long enough'])(
  'refuses the token %j and tells what to do',
  async content => {
    writeFileSync(join(directory, 'token'), content)
    await expect(ensureTokens(directory)).rejects.toMatchObject({
      code: 'invalid',
      hint: expect.stringContaining('rm '),
    })
  },
)
