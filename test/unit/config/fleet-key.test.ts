import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { readFleetKey } from '../../../src/config/fleet-key.ts'
import { removeDirectory } from '../../support/remove-directory.ts'
import { thrownError } from '../../support/thrown-error.ts'

const directory = mkdtempSync(join(tmpdir(), 'deputy-key-'))
afterAll(() => removeDirectory(directory))

const keyFile = (name: string, text: string): string => {
  const file = join(directory, name)
  writeFileSync(file, text)
  return file
}

it('is the same for daemons with the same text, and its id does not reveal it', () => {
  const text = '0123456789abcdef0123456789abcdef'
  const [a, b] = [readFleetKey(keyFile('a', text)), readFleetKey(keyFile('b', `${text}\n`))]
  expect(a).toEqual(b)
  expect(a.sealing).toHaveLength(32)
  expect(a.sealing.toString('hex')).not.toContain(a.id)
  expect(readFleetKey(keyFile('c', text.replace('0', 'x'))).id).not.toBe(a.id)
})

it('names the file that is missing or too short', () => {
  const missing = join(directory, 'missing')
  expect(thrownError(() => readFleetKey(missing))).toMatchObject({
    code: 'invalid',
    message: `The key of the fleet cannot be read from ${missing} (ENOENT).`,
    hint: expect.stringContaining('openssl rand -hex 32'),
  })
  expect(thrownError(() => readFleetKey(keyFile('short', 'hunter2')))).toMatchObject({
    message: expect.stringContaining('less than 32 characters'),
  })
})
