import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openContext, type RunContext, sealContext, sealingKeys } from '../../../src/runner/sealed-context.ts'

describe('the context of a run that is stored on its machine', () => {
  let directory: string
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'deputy-context-'))
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  const ownKeys = (name: string) => sealingKeys(join(directory, name), undefined)
  const context: RunContext = { secrets: ['hunter2'], format: 'text', isolation: ['none'], timeoutSeconds: 5 }

  it('is read by whoever has the key, and by nobody else', () => {
    const sealed = sealContext(context, ownKeys('key'))
    expect(openContext(sealed, ownKeys('key'))).toEqual(context)
    expect(Buffer.from(sealed, 'base64').includes('hunter2')).toBe(false)
    expect(() => openContext(sealed, ownKeys('other'))).toThrow('not sealed by this daemon')
  })

  it('is sealed with the key of the fleet, and read with that of the installation as well', () => {
    const fleetKey = randomBytes(32)
    const keys = sealingKeys(join(directory, 'key'), fleetKey)
    expect(openContext(sealContext(context, ownKeys('key')), keys)).toEqual(context)
    const sealed = sealContext(context, keys)
    expect(openContext(sealed, sealingKeys(join(directory, 'other'), fleetKey))).toEqual(context)
    expect(() => openContext(sealed, ownKeys('key'))).toThrow('not sealed by this daemon')
  })

  it('is never the same twice, and no byte of it can be changed', () => {
    const key = ownKeys('key')
    const sealed = sealContext(context, key)
    expect(sealContext(context, key)).not.toBe(sealed)
    for (const at of [0, 15, 40]) {
      const bytes = Buffer.from(sealed, 'base64')
      bytes[at]! ^= 1
      expect(() => openContext(bytes.toString('base64'), key)).toThrow('not sealed by this daemon')
    }
    for (const broken of ['', 'AAAA', sealed.slice(0, 24)]) expect(() => openContext(broken, key)).toThrow()
  })

  it('has a key that only its owner can read, and a damaged one is replaced', () => {
    const file = join(directory, 'damaged')
    writeFileSync(file, 'short')
    expect(ownKeys('damaged')[0]).toHaveLength(32)
    ownKeys('fresh')
    expect(statSync(join(directory, 'fresh')).mode & 0o777).toBe(0o600)
  })
})
