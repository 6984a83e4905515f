import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { PACKAGES, skippedLine } from '../../support/skipped-reporter.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const directory = mkdtempSync(join(tmpdir(), 'deputy-skipped-'))
afterAll(() => rmSync(directory, { recursive: true }))

const run = (source: string): string => {
  writeFileSync(join(directory, 'some.test.js'), source)
  const reporter = join(root, 'test/support/skipped-reporter.ts')
  return execFileSync(
    process.execPath,
    [
      join(root, 'node_modules/vitest/vitest.mjs'),
      'run',
      '--globals',
      '--root',
      directory,
      '--reporter',
      reporter,
    ],
    { encoding: 'utf8', env: { ...process.env, VITEST: '' } },
  )
}

describe('the last line of a test run', () => {
  it('counts the tests that were skipped', () => {
    const source = `it('runs', () => {}); it.skip('one', () => {}); describe.skip('more', () => { it('two', () => {}) })`
    expect(run(source).trim()).toMatch(/^2 tests were skipped; /)
  })

  it('says so when none was', () => {
    expect(run(`it('runs', () => {})`).trim()).toBe('No test was skipped.')
  })

  it('names the packages that would enable more', () => {
    expect(skippedLine(3, ['bwrap', 'sshd'])).toBe(
      '3 tests were skipped; to enable more: apt-get install bubblewrap openssh-server',
    )
    expect(skippedLine(1, [])).toContain('every package is installed')
  })

  it('knows the packages that CI installs', () => {
    const ci = readFileSync(join(root, '.ci/run'), 'utf8')
    for (const name of Object.values(PACKAGES)) expect(ci).toMatch(new RegExp(`[ ]${name}[ \\\\\\n]`))
  })
})
