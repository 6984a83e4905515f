import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { openSpool } from '../../../src/providers/local/spool.ts'
import { openSpoolReader } from '../../../src/providers/local/spool-reader.ts'

const before = vi.hoisted(() => ({ listing: (): void => {} }))
vi.mock('node:fs/promises', async original => {
  const real = await original<typeof import('node:fs/promises')>()
  const readdir = (path: string): Promise<string[]> => {
    before.listing()
    return real.readdir(path)
  }
  return { ...real, readdir }
})

it('loses nothing that is written between reading a segment and listing the next', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'deputy-spool-'))
  const spool = openSpool(dir, { head: 100, tail: 1e6 })
  const reader = openSpoolReader(dir, 0)
  spool.write('stdout', Buffer.from('one '), 0)
  let text = (await reader.next()).map(frame => frame.data.toString()).join('')
  before.listing = () => {
    before.listing = () => {}
    spool.write('stdout', Buffer.from('two '.padEnd(100)), 0)
    spool.write('stdout', Buffer.from('three'), 0)
  }
  for (let next = await reader.next(); next.length > 0; next = await reader.next())
    text += next.map(frame => frame.data.toString()).join('')
  expect(text).toBe(`one ${'two '.padEnd(100)}three`)
  spool.close()
  await reader.close()
  rmSync(dir, { recursive: true })
})
