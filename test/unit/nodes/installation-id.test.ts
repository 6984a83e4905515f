import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { installationId } from '../../../src/nodes/installation-id.ts'

describe('the installation id', () => {
  const [here, there] = ['a'.repeat(32), 'b'.repeat(32)]
  let directory: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'dpowner'))
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  it('stays the same', () => {
    const owner = installationId(directory, here)
    expect(owner).toMatch(/^[0-9a-f]{12}$/)
    expect(installationId(directory, here)).toBe(owner)
    // Without a machine id, the stored id is kept.
    expect(installationId(directory, null)).toBe(owner)
  })

  it('changes when the home directory was copied to another computer', () => {
    const owner = installationId(directory, here)
    const copy = installationId(directory, there)
    expect(copy).not.toBe(owner)
    expect(installationId(directory, there)).toBe(copy)
  })

  it('is kept when the file has no machine yet', () => {
    writeFileSync(join(directory, 'owner'), '0123456789ab\n')
    expect(installationId(directory, here)).toBe('0123456789ab')
    expect(installationId(directory, there)).not.toBe('0123456789ab')
  })
})
