import { spawnSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { terminalCommand } from '../../../src/runner/terminal-command.ts'

it('says what is missing on a machine without script', () => {
  const [, ...args] = terminalCommand(['true'], { columns: 80, rows: 24 }, ':')
  const PATH = mkdtempSync(join(tmpdir(), 'no-programs-'))
  const { status, stdout } = spawnSync('/bin/sh', args, { env: { PATH }, encoding: 'utf8' })
  expect(status).toBe(127)
  expect(stdout).toContain("no 'script'")
  expect(stdout).toContain('apt-get install bsdutils')
})
