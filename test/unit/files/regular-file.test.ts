import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createSecrets } from '../../../src/config/resolve-secrets.ts'
import { readRegularFile, readRegularFileSync, streamRegularFile } from '../../../src/files/regular-file.ts'

const dir = mkdtempSync(join(tmpdir(), 'deputy-files-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))
writeFileSync(join(dir, 'file'), 'content')
symlinkSync('file', join(dir, 'link'))
mkdirSync(join(dir, 'directory'))
execFileSync('mkfifo', [join(dir, 'fifo')])

const openFiles = (): number => readdirSync('/proc/self/fd').length

describe('a file that somebody else may have put there', () => {
  it('is read when it is a regular file', async () => {
    expect(String(await readRegularFile(join(dir, 'file'), { maxBytes: 7 }))).toBe('content')
    expect(String(readRegularFileSync(join(dir, 'file'), { maxBytes: 7 }))).toBe('content')
    expect(String(await readRegularFile(join(dir, 'link'), { maxBytes: 7, follow: true }))).toBe('content')
  })

  it.each(['fifo', 'directory', 'link', 'missing'])(
    'is refused at once when it is a %s',
    { timeout: 5000 },
    async name => {
      const path = join(dir, name)
      const before = openFiles()
      await expect(readRegularFile(path, { maxBytes: 7 })).rejects.toThrow()
      expect(() => readRegularFileSync(path, { maxBytes: 7 })).toThrow()
      await expect(streamRegularFile(path).next()).rejects.toThrow()
      expect(openFiles()).toBe(before)
    },
  )

  it('is refused when it is too large, also when it did not say so', async () => {
    await expect(readRegularFile(join(dir, 'file'), { maxBytes: 6 })).rejects.toThrow(/larger than 6 bytes/)
    expect(() => readRegularFileSync(join(dir, 'file'), { maxBytes: 6 })).toThrow(/larger than 6 bytes/)
    // Files in /proc say that they are empty.
    await expect(readRegularFile('/proc/self/status', { maxBytes: 6 })).rejects.toThrow(/larger than 6 bytes/)
  })

  it('holds up no secret of a job', { timeout: 5000 }, async () => {
    const secrets = createSecrets({ KEY: `file:${join(dir, 'fifo')}` }, {})
    await expect(secrets.resolve(['KEY'], new AbortController().signal)).rejects.toThrow(/cannot be read/)
  })
})
