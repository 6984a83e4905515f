import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Memo, memoKey, openMemo, sealMemo } from '../../../src/runtimes/ssh/memo.ts'

describe('what waits on a node for a later daemon', () => {
  let directory: string
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'deputy-memo-'))
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  const memo: Memo = { secrets: ['hunter2'], format: 'text', isolation: ['none'], timeoutSeconds: 5 }

  it('is read by whoever has the key, and by nobody else', () => {
    const key = memoKey(join(directory, 'key'))
    const sealed = sealMemo(memo, key)
    expect(openMemo(sealed, memoKey(join(directory, 'key')))).toEqual(memo)
    expect(Buffer.from(sealed, 'base64').includes('hunter2')).toBe(false)
    expect(() => openMemo(sealed, memoKey(join(directory, 'other')))).toThrow('not of this daemon')
  })

  it('is never the same twice, and no byte of it can be changed', () => {
    const key = memoKey(join(directory, 'key'))
    const sealed = sealMemo(memo, key)
    expect(sealMemo(memo, key)).not.toBe(sealed)
    for (const at of [0, 15, 40]) {
      const bytes = Buffer.from(sealed, 'base64')
      bytes[at]! ^= 1
      expect(() => openMemo(bytes.toString('base64'), key)).toThrow('not of this daemon')
    }
    for (const broken of ['', 'AAAA', sealed.slice(0, 24)]) expect(() => openMemo(broken, key)).toThrow()
  })

  it('has a key that only its owner can read, and a damaged one is replaced', () => {
    const file = join(directory, 'damaged')
    writeFileSync(file, 'short')
    expect(memoKey(file)).toHaveLength(32)
    memoKey(join(directory, 'fresh'))
    expect(statSync(join(directory, 'fresh')).mode & 0o777).toBe(0o600)
  })
})
